"""What every desk must do: the one in memory that other tests use, and a server's, over HTTP."""

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest

from forewarned.actuators.desk import Assignment, DeskUnavailableError, TaskDesk
from forewarned.actuators.driver import Power, Sighting, Vm
from forewarned.actuators.http_desk import HttpDesk, Server, UnsafeServerError
from forewarned.clock import VirtualClock, wall_clock
from forewarned.core.errors import TaskLostError
from forewarned.core.model import EventType
from forewarned.core.tasks import LEASE
from forewarned.security.certificates import provide
from tests.actuators.desks import WEB_0, MemoryDesk
from tests.actuators.served import rack1, served
from tests.actuators.times import QuickTime
from tests.agent.hooks.http_service import Asked, Reply, answering
from tests.builders import NOON
from tests.control.control_api import ControlApi, control_api

SEEN = Sighting(
    host="rack1",
    power=Power.RUNNING,
    witness="boot 1",
    conclusive=True,
    intent="some/key",
    issued=True,
    job="migrating",
)


class Office(Protocol):
    """A desk, and what tests need around it."""

    @property
    def desk(self) -> TaskDesk: ...

    async def add_task(self) -> None:
        """A Freeze of some VM."""

    async def let_the_lease_end(self) -> None: ...

    async def go_down(self) -> None: ...


@dataclass(frozen=True)
class MemoryOffice:
    desk: MemoryDesk
    time: QuickTime

    async def add_task(self) -> None:
        self.desk.put(EventType.FREEZE)

    async def let_the_lease_end(self) -> None:
        self.time.stand_still_for(LEASE)

    async def go_down(self) -> None:
        self.desk.is_down = True


@dataclass(frozen=True)
class HttpOffice:
    desk: HttpDesk
    control: ControlApi
    clock: VirtualClock

    async def add_task(self) -> None:
        await self.control.switch_on("web")
        await self.control.schedule("Freeze", "web", notice="0s", short_notice=True, duration="9s")

    async def let_the_lease_end(self) -> None:
        await self.clock.step(LEASE)

    async def go_down(self) -> None:
        self.control.store.is_down = True


@pytest.fixture
async def http_office() -> AsyncIterator[HttpOffice]:
    clock = VirtualClock(NOON, speed=0)
    async with (
        control_api(clock=clock, actuator_of=rack1) as control,
        served(control) as url,
        HttpDesk(Server(url=url), actuator="rack1", holder="hv-a:4711") as desk,
    ):
        yield HttpOffice(desk, control, clock)


@pytest.fixture(params=["memory", "http"])
async def office(request: pytest.FixtureRequest, http_office: HttpOffice) -> Office:
    if request.param == "http":
        return http_office
    time = QuickTime()
    return MemoryOffice(MemoryDesk(monotonic=time.monotonic), time)


async def claim(office: Office) -> Assignment:
    (assignment,) = await office.desk.claim(limit=5, patience=timedelta(0))
    return assignment


async def claims_nothing(office: Office) -> bool:
    return await office.desk.claim(limit=5, patience=timedelta(0)) == []


async def test_a_claimed_task_is_one_attempts_alone(office: Office) -> None:
    await office.add_task()

    task = await claim(office)

    assert (task.ref.attempt, task.type) == (1, EventType.FREEZE)
    assert (task.before, task.begun) == (None, False)
    assert task.key == f"{task.ref.event_id}/{task.vm.name}"
    assert await claims_nothing(office)


async def test_a_renewed_task_is_kept(office: Office) -> None:
    await office.add_task()
    task = await claim(office)

    await office.let_the_lease_end()
    await office.desk.renew(task.ref)

    assert await claims_nothing(office)


async def test_what_was_begun_is_told_to_the_next_attempt(office: Office) -> None:
    await office.add_task()
    first = await claim(office)
    await office.desk.begin(first.ref, SEEN)
    await office.let_the_lease_end()

    second = await claim(office)

    assert second.ref.attempt == 2
    assert (second.before, second.begun) == (SEEN, True)


async def test_reports_of_an_earlier_attempt_are_refused(office: Office) -> None:
    """I22: the attempt is the fencing number."""
    await office.add_task()
    old = (await claim(office)).ref
    await office.let_the_lease_end()
    new = (await claim(office)).ref
    desk = office.desk

    for report in (
        desk.renew(old),
        desk.begin(old, SEEN),
        desk.finish(old, SEEN),
        desk.fail(old, "no", unharmed=True, after=None),
    ):
        with pytest.raises(TaskLostError):
            await report

    await desk.begin(new, SEEN)
    await desk.finish(new, SEEN)


@pytest.mark.parametrize("ending", ["finish", "fail", "stick"])
async def test_a_task_that_is_over_is_nobodys(office: Office, ending: str) -> None:
    await office.add_task()
    task = await claim(office)
    await office.desk.begin(task.ref, SEEN)

    if ending == "finish":
        await office.desk.finish(task.ref, SEEN)
    else:
        await office.desk.fail(task.ref, "no", unharmed=ending == "fail", after=SEEN)
    await office.let_the_lease_end()

    with pytest.raises(TaskLostError):
        await office.desk.renew(task.ref)
    assert await claims_nothing(office)


async def test_a_server_without_its_store_can_be_asked_later(office: Office) -> None:
    await office.add_task()
    task = await claim(office)
    await office.go_down()

    with pytest.raises(DeskUnavailableError):
        await office.desk.claim(limit=1, patience=timedelta(0))
    with pytest.raises(DeskUnavailableError):
        await office.desk.begin(task.ref, SEEN)


# --- over HTTP -----------------------------------------------------------------------------------


async def test_a_task_an_operator_retries_is_carried_out_even_if_it_was_in_doubt(
    http_office: HttpOffice,
) -> None:
    """The operator has settled the doubt: the next attempt may act."""
    await http_office.add_task()
    task = await claim(http_office)
    await http_office.desk.begin(task.ref, SEEN)
    await http_office.desk.fail(task.ref, "in doubt", unharmed=False, after=None)

    await http_office.control.post(f"/v1/tasks/{task.ref.event_id}/web/retry")
    again = await claim(http_office)

    assert (again.before, again.begun) == (SEEN, False)


async def test_a_vm_is_handed_over_as_the_fleet_has_it(http_office: HttpOffice) -> None:
    web = {"name": "web", "host": "rack1", "vm_id": WEB_0.vm_id}
    await http_office.control.put_fleet({"vms": [web]})
    await http_office.add_task()

    task = await claim(http_office)

    assert task.vm == Vm(name="web", vm_id=WEB_0.vm_id, host="rack1")
    assert task.duration == timedelta(seconds=9)


async def test_an_id_that_was_made_up_here_is_not_handed_over_as_its_platforms(
    http_office: HttpOffice,
) -> None:
    await http_office.add_task()

    task = await claim(http_office)

    assert (await http_office.control.get("/v1/vms/web"))["vm_id"]
    assert task.vm.vm_id == ""


async def test_a_server_that_is_not_there_can_be_asked_later() -> None:
    async with HttpDesk(Server(url="http://127.0.0.1:1"), actuator="rack1", holder="test") as desk:
        with pytest.raises(DeskUnavailableError, match=r"can't reach http://127\.0\.0\.1:1"):
            await desk.claim(limit=1, patience=timedelta(0))


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            Reply(status=403, json={"error": {"message": "rack1 is a reader"}}),
            "403: rack1 is a reader",
        ),
        (Reply(status=502, text="<html>"), "502: <html>"),
        (Reply(text="hello"), "can't be read"),
        (Reply(json={"tasks": [{"event_id": 7}]}), "can't be read"),
    ],
)
async def test_any_other_answer_is_said(reply: Reply, said: str) -> None:
    def answer(_: Asked) -> Reply:
        return reply

    with answering(answer) as service:
        async with HttpDesk(
            Server(url=service.url, token="secret"), actuator="rack1", holder="test"
        ) as desk:
            with pytest.raises(DeskUnavailableError, match=said):
                await desk.claim(limit=1, patience=timedelta(0))

    (asked,) = service.asked
    assert asked.headers["authorization"] == "Bearer secret"


def test_a_token_is_not_sent_where_it_could_be_read() -> None:
    """S16."""
    with pytest.raises(UnsafeServerError):
        Server(url="http://forewarned.example:8170", token="secret")

    Server(url="https://forewarned.example:8170", token="secret")
    Server(url="http://127.0.0.1:8170", token="secret")


async def test_a_server_is_trusted_by_the_very_certificate_it_shows(tmp_path: Path) -> None:
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    made = provide(tmp_path / "own", names=["forewarned.example"], now=wall_clock())
    other = provide(tmp_path / "other", names=["forewarned.example"], now=wall_clock())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.certificate, made.key)

    async with (
        control_api(actuator_of=rack1) as control,
        served(control, lambda: context) as url,
    ):
        trusting = Server(url=url, shows=made.certificate)
        async with HttpDesk(trusting, actuator="rack1", holder="test") as desk:
            assert await desk.claim(limit=1, patience=timedelta(0)) == []
        wary = Server(url=url, shows=other.certificate)
        async with HttpDesk(wary, actuator="rack1", holder="test") as desk:
            with pytest.raises(DeskUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
                await desk.claim(limit=1, patience=timedelta(0))
