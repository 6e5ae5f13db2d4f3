"""`forewarned doctor` beside a server that runs."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typing_extensions import override

from forewarned.cli.doctor import listeners, machine, state_directory
from forewarned.cli.doctor.running_server import of_nodes, of_sources, of_subscriptions
from forewarned.control.v1 import wire
from forewarned.control.v1.sources.wire import ShownSource
from forewarned.control.v1.subscriptions.wire import shown
from forewarned.core.model import Resource
from forewarned.runtime.settings import load
from forewarned.service.subscriptions.model import Health, SubscriptionState
from forewarned.service.subscriptions.subscriptions import SubscriptionView
from tests.builders import NOON
from tests.cli.served import Served, invoke, serving
from tests.end_to_end.server_process import serving as emulator
from tests.service.subscriptions.messages import a_subscription

CLAIM = {"actuator": "rack1", "holder": "hv-a:1", "limit": 9}
DOWN = {"attempt": 1, "error": "no answer", "unharmed": False}


def rack1(_: Resource) -> str:
    return "rack1"


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(actuator_of=rack1) as made:
        yield made


def findings(served: Served, *flags: str) -> dict[str, Any]:  # JSON, which tests look into
    done = invoke("doctor", "--json", "--control", served.address, *flags)
    return {each["code"]: each for each in json.loads(done.stdout)["findings"]}


def test_a_task_that_is_stuck_and_an_event_that_takes_too_long_are_named(served: Served) -> None:
    event_id = served.schedule("web", type="Freeze")
    served.start(served.steered.post(f"/v1/events/{event_id}/approve")).result()
    served.start(served.steered.post("/v1/tasks/claim", CLAIM)).result()
    served.start(served.steered.post(f"/v1/tasks/{event_id}/web/fail", DOWN)).result()
    served.run("clock", "step", "2h")

    found = findings(served)

    assert found["task_stuck"]["what"] == "no answer"
    assert found["event_overdue"]["where"] == f"event {event_id}"
    assert not {"not_running", "port_taken", "server_silent"} & set(found)


def test_what_is_not_listed_is_counted(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    names = [f"many-{number}" for number in range(7)]
    file.write_text("".join(f'[[vms]]\nname = "{name}"\n' for name in names))
    served.run("fleet", "apply", str(file))
    events = {name: served.schedule(name, type="Freeze") for name in names}
    for event_id in events.values():
        served.start(served.steered.post(f"/v1/events/{event_id}/approve")).result()
    served.start(served.steered.post("/v1/tasks/claim", CLAIM)).result()
    for name, event_id in list(events.items())[:6]:
        served.start(served.steered.post(f"/v1/tasks/{event_id}/{name}/fail", DOWN)).result()
    served.run("clock", "step", "2h")

    found = findings(served)

    assert found["task_stuck"]["what"] == "1 more task is stuck"
    assert found["event_overdue"]["what"] == "2 more events are overdue"


def test_tasks_that_no_one_claims_are_named_with_their_actuator(served: Served) -> None:
    event_id = served.schedule("web", type="Freeze")
    served.start(served.steered.post(f"/v1/events/{event_id}/approve")).result()
    served.run("clock", "step", "3m")

    found = findings(served)["tasks_unclaimed"]
    assert found["where"] == "actuator rack1"
    assert found["what"] == "tasks not claimed for 2m or more: 1"


def test_settings_that_the_running_server_does_not_have_are_named(
    served: Served, tmp_path: Path
) -> None:
    (tmp_path / "forewarned.toml").write_text('clock = "60x"\n')

    found = findings(served, "--config", str(tmp_path / "forewarned.toml"))

    assert (
        found["settings_changed"]["what"] == "clock is 60x here, and paused in the running server"
    )


def test_another_server_at_the_address_is_named(tmp_path: Path) -> None:
    with emulator(tmp_path, "--workers", "0") as server:
        control = ("--control", server.control)
        other = invoke("doctor", "--json", *control, "--data", str(tmp_path / "ours"))
        same = invoke("doctor", "--json", *control, "--data", str(server.data))

    assert "another Forewarned server listens there" in other.stdout
    assert json.loads(same.stdout)["ok"], same.stdout


def test_a_server_that_asks_for_a_token_is_well_without_one(tmp_path: Path) -> None:
    with emulator(tmp_path, "--workers", "0", "--control-access", "token") as server:
        where = ("--control", server.control, "--control-access", "token")
        done = invoke("doctor", "--json", *where, "--data", str(server.data))

    codes = {each["code"] for each in json.loads(done.stdout)["findings"]}
    assert done.exit_code == 0, done.stdout
    assert "no_token_given" in codes


@pytest.mark.parametrize(
    ("status", "code"), [(503, "store_unavailable"), (404, "port_taken"), (200, "port_taken")]
)
def test_a_server_that_is_unwell_is_told_from_another_program(status: int, code: str) -> None:
    body = b'{"status": "store_unavailable"}' if status == 503 else b"<html>"

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        done = invoke("doctor", "--json", "--control", f"127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()

    found = [each["code"] for each in json.loads(done.stdout)["findings"]]
    assert found == [code]
    assert done.exit_code == 1


def test_messages_that_no_one_takes_are_named_with_their_subscription() -> None:
    def codes(health: Health, state: SubscriptionState = SubscriptionState.ACTIVE) -> list[str]:
        view = SubscriptionView(subscription=a_subscription(state=state), health=health)
        return [each.code for each in of_subscriptions([shown(view)])]

    assert codes(Health(failures=3, failed=3, last_error="refused", pending=2)) == [
        "subscription_failing"
    ]
    assert codes(Health(undelivered=2, last_error="refused")) == ["messages_undelivered"]
    gone = Health(failures=1, failed=1, last_error="410 Gone", pending=2)
    assert codes(gone, SubscriptionState.PAUSED) == ["subscription_paused"]
    assert codes(replace(gone, undelivered=1), SubscriptionState.PAUSED) == [
        "subscription_paused",
        "messages_undelivered",
    ]
    assert codes(Health(), SubscriptionState.PAUSED) == []
    assert codes(Health()) == []


def a_node(name: str, *, seen: timedelta) -> wire.Node:
    return wire.Node(
        id=name,
        name=name,
        version="1",
        speaks=1,
        this=False,
        fresh=seen < timedelta(seconds=3),
        seen_at=NOON - seen,
        lag=wire.Span(timedelta(seconds=1)),
        metadata="http://a:80",
        control=f"https://{name}:8170",
        arm=None,
    )


def test_a_node_that_does_not_keep_up_and_a_database_with_one_copy_are_named() -> None:
    nodes = (a_node("n1", seen=timedelta(0)), a_node("n2", seen=timedelta(minutes=7)))

    found = list(of_nodes(wire.Nodes(now=NOON, nodes=nodes, epoch=1, standbys="")))

    assert [each.code for each in found] == ["node_stale", "one_copy"]
    assert found[0].where == "node n2 (https://n2:8170)"
    assert "last seen 7m ago" in found[0].what


def test_a_platform_that_cant_be_listed_and_hosts_that_do_not_answer_are_named() -> None:
    silent = ShownSource(
        name="rack1",
        holder="hv-a:1",
        every=30.0,
        reported_at=NOON,
        complete_at=NOON,
        vms=3,
        silent={"hv-b": "no route"},
        error="",
        remarks=(),
        more_remarks=0,
    )
    failing = msgspec.structs.replace(silent, name="nova", error="sign-in refused")

    found = list(of_sources([silent, failing]))

    assert [(each.code, each.where) for each in found] == [
        ("hosts_silent", "source rack1"),
        ("source_failing", "source nova"),
    ]


# --- what can't be broken here -------------------------------------------------------------------


def test_a_full_disk_is_named_before_it_is_full() -> None:
    nearly = [each.code for each in state_directory.of_space(Path("/data"), 500 << 20)]
    full = [each.code for each in state_directory.of_space(Path("/data"), 1 << 20)]

    assert (nearly, full) == (["disk_nearly_full"], ["disk_full"])
    assert not list(state_directory.of_space(Path("/data"), 5 << 30))


def test_a_kernel_that_does_not_tell_ports_is_named_where_ports_tell_vms(tmp_path: Path) -> None:
    by_port = load(flags={"mode": "service", "identity": "port-marks"}, environ={}).settings
    by_address = load(flags={"mode": "service"}, environ={}).settings
    switch = tmp_path / "tcp_fwmark_accept"
    switch.write_text("0\n")

    assert [each.code for each in listeners.of_port_marks(by_port, switch)] == ["port_marks_off"]
    assert not list(listeners.of_port_marks(by_address, switch))
    switch.write_text("1\n")
    assert not list(listeners.of_port_marks(by_port, switch))


def test_too_few_open_files_and_a_free_running_clock_are_a_services_to_worry_about() -> None:
    service = load(flags={"mode": "service"}, environ={}).settings
    emulator = load(flags={}, environ={}).settings

    assert [each.code for each in listeners.of_open_files(service, 1024)] == ["few_open_files"]
    assert [each.code for each in machine.of_clock(service, 5)] == ["clock_unsynchronised"]
    assert not list(listeners.of_open_files(emulator, 1024))
    assert not list(machine.of_clock(emulator, 5))
    assert not list(machine.of_clock(service, 0))
