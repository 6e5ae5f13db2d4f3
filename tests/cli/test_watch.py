"""What a watcher makes of the stream of changes."""

import msgspec
import pytest

from forewarned.cli.failures import ExitCode, RefusedError, ServerFailedError
from forewarned.cli.watch import (
    SignedOut,
    Wanted,
    Watched,
    change_line,
    open_line,
    read_message,
)
from forewarned.control.v1.wire import Change, Farewell, Hello
from tests.cli.answers import MINUTE, NOON, A, B, an_event
from tests.cli.printing import printed

EVENT = an_event(A)
STARTED = an_event(A, status="Started", not_before=None, started_at=NOON)
HELLO = Hello(now=NOON, events=(EVENT,), truncated=False)


def a_change(action: str = "started", **more: object) -> Change:
    usual = {"scope": "vm/web", "resources": ("web",), "cause": "", "event": None}
    return msgspec.convert({"at": NOON, "action": action, **usual, **more}, Change)


def test_a_watcher_follows_an_event_until_it_is_gone() -> None:
    watched = Watched(Wanted())

    watched.take(HELLO)
    before = dict(watched.events)
    watched.take(a_change(event=STARTED, cause="approved"))
    during = dict(watched.events)
    watched.take(a_change("completed", event=STARTED))

    assert before == {A: EVENT}
    assert during == {A: STARTED}
    assert watched.events == {}


def test_the_page_shows_open_events_and_the_last_changes() -> None:
    watched = Watched(Wanted())
    watched.take(HELLO)
    watched.take(a_change("activated"))

    assert printed([watched.page(NOON - MINUTE)]) == [
        "2026-01-05 11:59:00 UTC",
        "Event    Type   Status    NotBefore (UTC)           VMs",
        "0000000A Reboot Scheduled 2026-01-05 12:00:00 in 1m web",
        "",
        "2026-01-05 12:00:00 scope vm/web activated web",
    ]


def test_the_page_of_a_quiet_server_says_so() -> None:
    assert printed([Watched(Wanted()).page(NOON)])[1] == "no open events"


def test_only_what_is_wanted_is_of_interest() -> None:
    for wanted in (Wanted(vm="db"), Wanted(scope="vm/db"), Wanted(type="Freeze")):
        watched = Watched(wanted)

        assert watched.take(HELLO)
        assert not watched.take(a_change(event=STARTED))
        assert watched.events == {}
        assert not watched.recent


def test_names_of_vms_match_in_any_letter_case() -> None:
    watched = Watched(Wanted(vm="WEB", scope="vm/web", type="Reboot"))

    assert watched.take(a_change(event=STARTED))


def test_changes_of_no_event_are_left_out_once_a_type_is_wanted() -> None:
    assert Watched(Wanted(scope="vm/web")).take(a_change("activated"))
    assert not Watched(Wanted(type="Reboot")).take(a_change("activated"))


def test_a_line_says_when_what_which_event_whom_and_why() -> None:
    started = a_change(event=STARTED, cause="approved")

    assert change_line(started) == f"2026-01-05 12:00:00 Reboot started {A} web (approved)"
    assert change_line(a_change("restored")) == "2026-01-05 12:00:00 scope vm/web impact over web"
    assert open_line(EVENT) == f"2026-01-05 11:45:00 Reboot scheduled {A} web"
    assert open_line(STARTED) == f"2026-01-05 12:00:00 Reboot started {A} web"


def test_messages_are_known_by_their_shape() -> None:
    started = a_change(event=an_event(B))

    assert read_message("hello", msgspec.json.encode(HELLO).decode()) == HELLO
    assert read_message("started", msgspec.json.encode(started).decode()) == started
    assert read_message("closing", '{"message":"bye"}') == Farewell("bye")
    assert read_message("signed_out", '{"message":"bye"}') == SignedOut("bye")
    assert read_message("new_in_some_later_version", '{"x":1}') is None


def test_a_type_of_event_that_a_later_version_has_is_told_as_such() -> None:
    later = msgspec.json.encode(a_change(event=an_event(B))).replace(b"Reboot", b"Hibernate")

    with pytest.raises(ServerFailedError, match="newer than this CLI") as caught:
        read_message("scheduled", later.decode())

    assert "Hibernate" in caught.value.message
    assert "Update this CLI" in caught.value.advice[0]


def test_the_servers_last_words_are_kept() -> None:
    watched = Watched(Wanted())

    assert not watched.take(Farewell("the server is stopping"))
    assert watched.farewell == "the server is stopping"


def test_a_watcher_whose_token_is_revoked_is_refused_and_told_what_to_do() -> None:
    """S12."""
    with pytest.raises(RefusedError, match="is no longer valid") as caught:
        Watched(Wanted()).take(SignedOut("your token is no longer valid"))

    assert caught.value.exit_code == ExitCode.REFUSED
    assert "FOREWARNED_TOKEN" in caught.value.advice[0]
