import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.core.errors import InvalidIdError
from forewarned.core.ids import parse_event_id, same_name

GUID = "602D9444-D2CD-49C7-8624-8643E7171297"


@pytest.mark.parametrize("text", [GUID, GUID.lower(), GUID.title()])
def test_an_event_id_is_the_same_in_any_letter_case_and_kept_in_upper(text: str) -> None:
    assert parse_event_id(text) == GUID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        GUID.replace("-", ""),
        f"{{{GUID}}}",
        f" {GUID}",
        f"{GUID}\n",
        GUID.replace("D", "G"),
        GUID.replace("602", "٦٠٢"),
        # A ligature whose upper case is two hexadecimal digits.
        f"\N{LATIN SMALL LIGATURE FF}{GUID[2:]}",
    ],
)
def test_anything_but_a_guid_is_refused_as_an_event_id(text: str) -> None:
    with pytest.raises(InvalidIdError) as refused:
        parse_event_id(text)

    assert refused.value.text == text


@given(st.uuids())
def test_every_guid_is_an_event_id(guid: object) -> None:
    assert parse_event_id(str(guid)) == str(guid).upper()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("web_0", "WEB_0", True),
        ("WebRole_IN_0", "webrole_in_0", True),
        ("straße", "STRASSE", True),
        ("web_0", "web_1", False),
        ("web_0", "web_0 ", False),
    ],
)
def test_names_are_compared_without_letter_case(one: str, other: str, same: bool) -> None:
    assert same_name(one, other) is same
    assert same_name(other, one) is same
