"""Time, as a person at the command line moves it."""

import signal
from pathlib import Path

from tests.end_to_end.server_process import Server, ready, serving, start


def test_a_step_of_15_minutes_starts_a_reboot_and_one_of_14m59s_does_not(
    shared_server: Server,
) -> None:
    """I1: nothing starts early; I20: nothing is late."""
    shared_server.get()
    shared_server.command("schedule", "reboot", "--vm", "web")

    shared_server.command("clock", "step", "14m59s")
    [early] = shared_server.get().json["Events"]
    shared_server.command("clock", "step", "1s")
    [on_time] = shared_server.get().json["Events"]

    assert early["EventStatus"] == "Scheduled"
    assert on_time["EventStatus"] == "Started"
    assert on_time["NotBefore"] == ""


def test_an_unapproved_reboot_starts_exactly_at_its_not_before(shared_server: Server) -> None:
    shared_server.get()
    [scheduled] = shared_server.command("schedule", "reboot", "--vm", "web")["events"]

    shared_server.command("clock", "step", "1h")
    rows = shared_server.command("history", "--event", scheduled["event_id"])["history"]

    started = next(row for row in rows if row["action"] == "started")
    assert started["at"] == scheduled["not_before"]
    assert started["cause"] == "not_before"


def test_a_restarted_server_does_not_go_back_in_time(tmp_path: Path) -> None:
    """I3, I7: what VMs were promised before the restart still holds after it."""
    with serving(tmp_path) as server:
        server.get()
        server.command("schedule", "reboot", "--vm", "web")
        before = server.get().body
        stepped = server.command("clock", "step", "3d")["now"]

    with serving(tmp_path) as server:
        now = server.command("clock", "show")["now"]
        after = server.get().json

    assert now >= stepped
    assert after["DocumentIncarnation"] > 2
    assert b"Scheduled" in before


def test_a_killed_server_does_not_go_back_behind_a_step_it_has_answered(tmp_path: Path) -> None:
    """I23: what was answered is durable, the time included."""
    with start(tmp_path) as running:
        server = ready(running, tmp_path)
        stepped = server.command("clock", "step", "5d")["now"]
        running.send_signal(signal.SIGKILL)

    with serving(tmp_path) as server:
        assert server.command("clock", "show")["now"] >= stepped
