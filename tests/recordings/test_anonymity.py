"""What leaves no trace in an anonymous recording, and what stays as it was."""

import json

import pytest

from forewarned.recordings.anonymity import Anonymity, read_key, written_key

KEY = bytes(range(32))
ID = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
SUBSCRIPTION = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
PATH = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/payroll/providers/Microsoft.Compute"
EVENT = {
    "EventId": ID,
    "EventStatus": "Scheduled",
    "EventType": "Reboot",
    "ResourceType": "VirtualMachine",
    "Resources": ["payroll-web_0", "PAYROLL-WEB_1"],
    "NotBefore": "Thu, 01 Jan 2026 13:00:00 GMT",
    "Description": "Payroll-Web_1 is going to be restarted.",
    "EventSource": "User",
    "DurationInSeconds": -1,
    "Unheard": {"Of": f"{PATH}/virtualMachineScaleSets/payroll-web"},
}
DOCUMENT = {"DocumentIncarnation": 3, "Events": [EVENT]}


def anonymous(value: object, key: bytes = KEY) -> str:
    return Anonymity(key).body(json.dumps(value).encode()).decode()


def test_ids_and_names_are_gone_and_everything_else_is_as_it_was() -> None:
    text = anonymous(DOCUMENT)

    assert "payroll" not in text.casefold()
    assert ID not in text
    assert SUBSCRIPTION not in text
    [event] = json.loads(text)["Events"]
    kept = ("EventStatus", "EventType", "ResourceType", "NotBefore", "EventSource")
    assert {name: event[name] for name in kept} == {name: EVENT[name] for name in kept}
    assert list(event) == list(EVENT)
    assert event["Description"] == f"{event['Resources'][1]} is going to be restarted."


def test_the_same_name_has_the_same_stand_in_in_any_letters_and_after_a_restart() -> None:
    once, again = Anonymity(KEY), Anonymity(KEY)

    assert once.name("Web_0") == again.name("web_0") == once.name("WEB_0")
    assert once.name("web_0") != once.name("web_1")
    assert anonymous(DOCUMENT) == anonymous(DOCUMENT)


def test_without_the_key_a_stand_in_says_nothing() -> None:
    other = bytes(32)

    assert Anonymity(KEY).name("web_0") != Anonymity(other).name("web_0")
    assert anonymous(DOCUMENT) != anonymous(DOCUMENT, other)


def test_an_id_is_still_an_id_of_the_same_form() -> None:
    made = Anonymity(KEY).text(ID)

    assert made != ID
    assert made == made.upper()
    assert [len(part) for part in made.split("-")] == [8, 4, 4, 4, 12]
    assert Anonymity(KEY).text(ID.lower()) == made.lower()


def test_a_body_that_was_cut_off_gives_nothing_away() -> None:
    whole = json.dumps(DOCUMENT)
    for length in range(len(whole)):
        cut = Anonymity(KEY).body(whole[:length].encode()).decode()

        assert "payroll-web_" not in cut.casefold(), cut
        assert ID not in cut


def test_a_field_keeps_a_value_that_is_also_the_name_of_a_vm() -> None:
    event = {"EventType": "Freeze", "EventSource": "User", "Resources": ["freeze", "user"]}

    found = json.loads(anonymous({"Events": [event]}))["Events"][0]

    assert (found["EventType"], found["EventSource"]) == ("Freeze", "User")
    assert not {"freeze", "user"} & set(found["Resources"])


def test_what_is_no_text_is_left_out() -> None:
    assert Anonymity(KEY).body(b"\xff\xfe") == b""


def test_a_key_is_read_as_it_was_written_and_anything_else_is_refused() -> None:
    assert read_key(written_key(KEY)) == KEY
    for wrong in (b"", b"short", b"c2hvcnQ=\n"):
        with pytest.raises(ValueError):
            read_key(wrong)
