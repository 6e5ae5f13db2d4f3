"""Commands that look, against the real control API."""

import json

from tests.builders import event_id
from tests.cli.served import Served

ONE = event_id(1)


def test_events_lists_what_is_open_with_the_time_left(served: Served) -> None:
    served.schedule("web")

    result = served.run("events")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Event    Type   Status    NotBefore (UTC)            VMs",
        "00000001 Reboot Scheduled 2026-01-05 12:15:00 in 15m web",
    ]


def test_events_can_be_narrowed(served: Served) -> None:
    served.schedule("web")
    served.schedule("report", type="Freeze")

    by_vm = served.run("events", "--vm", "report", "--json")
    by_type = served.run("events", "--type", "reboot", "--json")
    by_scope = served.run("events", "--scope", "vm/report", "--json")

    assert [e["resources"] for e in json.loads(by_vm.stdout)["events"]] == [["report"]]
    assert [e["resources"] for e in json.loads(by_type.stdout)["events"]] == [["web"]]
    assert [e["resources"] for e in json.loads(by_scope.stdout)["events"]] == [["report"]]


def test_events_that_are_over_are_listed_when_asked_for(served: Served) -> None:
    served.run("cancel", served.schedule("web"), "--reason", "no need")

    assert served.run("events").stdout == "no open events\n"
    assert "Canceled" in served.run("events", "--all").stdout


def test_json_is_exactly_what_the_api_returned(served: Served) -> None:
    served.schedule("web")

    result = served.run("--json", "events")
    returned = served.start(served.steered.http.get("/v1/events")).result()

    assert result.stdout == returned.text + "\n"


def test_an_empty_list_for_a_name_that_is_not_there_says_so(served: Served) -> None:
    events = served.run("events", "--vm", "wob")
    history = served.run("history", "--scope", "avset/dc")

    assert (events.exit_code, history.exit_code) == (0, 0)
    assert "No VM is named 'wob' now." in events.stderr
    assert "did you mean web?" in events.stderr
    assert "did you mean avset/db?" in history.stderr


def test_an_event_is_explained(served: Served) -> None:
    served.schedule("web")

    result = served.run("explain", "0000")

    assert result.exit_code == 0
    assert result.stdout.startswith(f"Reboot {ONE} Scheduled\n")
    assert "why          it has not been approved yet" in result.stdout
    assert "NotBefore    2026-01-05 12:15:00 UTC (in 15m)" in result.stdout
    assert json.loads(served.run("explain", ONE, "--json").stdout)["event"]["event_id"] == ONE


def test_history_says_who_did_what(served: Served) -> None:
    served.start(served.steered.switch_on("web")).result()
    served.run("schedule", "reboot", "--vm", "web")
    served.run("cancel", "0000", "--reason", "no need")

    result = served.run("history", "--vm", "web", "--limit", "2")

    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[:3] == [
        "At (UTC) What Event VMs Who and why",
        "2026-01-05 12:00:00 Reboot canceled 00000001 web cli:ada: no need",
        "2026-01-05 12:00:00 Reboot scheduled 00000001 web cli:ada",
    ]
    assert lines[3].startswith("There is more: --before ")


def test_history_goes_on_where_a_listing_ended(served: Served) -> None:
    first = served.run("history", "--limit", "1", "--json")
    then = served.run("history", "--before", str(json.loads(first.stdout)["next"]), "--json")

    ids = [row["id"] for row in json.loads(then.stdout)["history"]]
    assert ids
    assert max(ids) < json.loads(first.stdout)["history"][0]["id"]


def test_history_can_be_narrowed_to_an_action_and_a_time(served: Served) -> None:
    served.schedule("web")

    done = served.run("history", "--action", "scheduled", "--json")
    later = served.run("history", "--since", "2999-01-01T00:00:00Z", "--json")
    wrong = served.run("history", "--until", "yesterday")

    assert {row["action"] for row in json.loads(done.stdout)["history"]} == {"scheduled"}
    assert json.loads(later.stdout)["history"] == []
    assert "is not an instant" in wrong.stderr


def test_history_can_be_narrowed(served: Served) -> None:
    served.schedule("web")
    served.run("approve", "0000")

    by_event = served.run("history", "--event", "0000", "--json")
    by_actor = served.run("history", "--actor", "cli:ada", "--json")
    by_type = served.run("history", "--type", "freeze")

    assert {r["event_id"] for r in json.loads(by_event.stdout)["history"]} == {ONE}
    assert {r["actor"] for r in json.loads(by_actor.stdout)["history"]} == {"cli:ada"}
    assert by_type.stdout == "no history\n"


def test_the_fleet_is_shown_by_scope(served: Served) -> None:
    served.schedule("web")

    result = served.run("fleet", "show")

    assert result.stdout.startswith(
        "vm/web  virtual machine, active, read 0s ago by web, incarnation 2, 1 open event\n"
        "VM  Address  Host  UD FD Zone State   Priority\n"
        "web 10.0.0.1 rack1 0  0       running Regular\n"
    )
    assert result.stdout.endswith("8 VMs in 5 scopes\n")
    assert len(json.loads(served.run("fleet", "show", "--json").stdout)["scopes"]) == 5


def test_settings_of_the_running_server_can_be_asked_for(served: Served) -> None:
    result = served.run("settings", "--running")

    assert result.stdout.splitlines() == [
        "Setting Value    From",
        "mode    emulator default",
        "clock   paused   --clock",
    ]


def test_colours_tell_types_and_states_apart_unless_unwanted(served: Served) -> None:
    served.schedule("web")

    coloured = served.run("events", NO_COLOR="", FORCE_COLOR="1", TERM="xterm-256color")
    plain = served.run("events", NO_COLOR="1", FORCE_COLOR="1", TERM="xterm-256color")

    assert "\x1b[33mReboot\x1b[0m" in coloured.stdout
    assert "\x1b[33m" not in plain.stdout
    assert "\x1b[" not in served.run("events", NO_COLOR="").stdout
