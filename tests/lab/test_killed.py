"""I22: a real actuator is killed with SIGKILL at every step, and real guests are acted on once."""

import multiprocessing
import signal
from collections import Counter
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext, ForkServerProcess

import pytest
from _pytest.mark import ParameterSet

from tests.lab.post import STEPS, Post
from tests.lab.service import Service

PATIENCE = 180
"""Seconds: until the lease of the one that died is over, and for what is left to do then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuators:
    """Of one name, one after the other."""

    service: Service
    processes: ForkServerContext
    name: str

    def start(self, last: str | None = None) -> ForkServerProcess:
        """One that carries out a task, or dies before this step of it."""
        from tests.lab.killed_actuator import run  # it needs libvirt, which the lab has by now

        lab = self.service.lab
        post = Post(
            actuator=self.name,
            namespace=lab.service,
            control=self.service.server.control,
            hosts=tuple(lab.hosts),
            uri=lab.uri,
            peer_uri=lab.peer_uri,
        )
        # One that never ends must not keep the tests from ending.
        process = self.processes.Process(target=run, args=(post, last), daemon=True)
        process.start()
        return process


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Starts processes fast: what they import is imported once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.lab.killed_actuator"])
    return context


def exit_code(process: ForkServerProcess) -> int | None:
    """None if it does not end."""
    process.join(PATIENCE)
    return process.exitcode


def steps_of_both() -> list[ParameterSet]:
    """Most dangerous are a reset that nothing shows yet, and half a migration."""
    pairs = [(step, step) for step in STEPS if step not in {"while it moves", "mark as issued"}]
    return [
        pytest.param("mark as issued", "while it moves", id="most dangerous"),
        pytest.param(None, "mark as issued", id="mark as issued", marks=pytest.mark.thorough),
        *(pytest.param(*pair, id=pair[0], marks=pytest.mark.thorough) for pair in pairs),
    ]


@pytest.mark.parametrize(("in_reboot", "in_move"), steps_of_both())
def test_killed_at_any_step_actuators_boot_a_guest_once_and_move_a_guest_once(
    service: Service,
    migrations: "Counter[str]",
    processes: ForkServerContext,
    in_reboot: str | None,
    in_move: str,
) -> None:
    """Both at once, since what a dead actuator has claimed is its own for half a minute."""
    service.assign(web="reboots", db="moves")
    web, db = (service.guests[name].serial for name in ("web", "db"))
    boots, boots_of_db, source = web.boots(), db.boots(), service.host("db")
    said, said_by_db = len(web.lines), len(db.lines)
    reboots, moves = (
        Actuators(service=service, processes=processes, name=name) for name in ("reboots", "moves")
    )

    killed = [reboots.start(in_reboot), moves.start(in_move)]
    reboot, move = service.schedule("Reboot", "web"), service.schedule("Freeze", "db")
    codes = [exit_code(process) for process in killed]
    followers = [
        actuators.start()
        for actuators, step in ((reboots, in_reboot), (moves, in_move))
        if step not in {None, "stop"}
    ]
    assert [exit_code(process) for process in followers] == [0] * len(followers)
    if in_reboot in {"act", "mark as issued"}:
        # Only its mark shows that a guest was reset. So an operator decides, who sees the guest.
        assert service.task(reboot) == "Stuck"
        service.ask("POST", f"/v1/tasks/{reboot}/web/{_DECISIONS[in_reboot]}", {})
    if in_reboot == "act":
        assert exit_code(reboots.start()) == 0
    for event_id in (reboot, move):
        service.wait_until_over(event_id)
    web.wait_for("poll 3$", since=said)
    db.wait_for(r'document .*"Events":\[\]', since=said_by_db)

    assert codes == [0 if in_reboot is None else -signal.SIGKILL, -signal.SIGKILL]
    assert migrations["db"] == 1
    assert len(set(web.boots())) == len(set(boots)) + 1 == len(web.boots())
    assert db.boots() == boots_of_db
    assert {source, service.host("db")} == {"hv-a", "hv-b"}


_DECISIONS = {"act": "retry", "mark as issued": "skip"}
"""By the step before which the actuator died."""
