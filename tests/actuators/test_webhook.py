"""The webhook driver, with services that answer late, twice, wrongly or never."""

import base64
import hashlib
import hmac
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typing_extensions import override

from forewarned.actuators.attempt import Attempt, Equipment
from forewarned.actuators.decision import OnDoubt, Procedure
from forewarned.actuators.driver import (
    Action,
    DriverError,
    Effect,
    Progress,
    RefusedError,
    TryLaterError,
    Vm,
)
from forewarned.actuators.slots import Limits, Slots
from forewarned.actuators.webhook import WebhookDriver, WebhookTable
from forewarned.core.model import EventType
from tests.actuators.contract import KEY, DriverContract, quiet
from tests.actuators.desks import EVENT, WEB_0, Kept, MemoryDesk
from tests.actuators.times import QuickTime
from tests.agent.hooks.http_service import Asked, Reply, Service, answering

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
SECRET = b"0123456789abcdef"
REDEPLOY = Action(
    type=EventType.REDEPLOY,
    do="ask",
    effect=Effect.MOVES,
    duration=timedelta(seconds=9),
    attempt=3,
    cordoned=frozenset({"hv-d", "hv-c"}),
    target="hv-b",
)


@dataclass
class Receiver:
    """Does once what it is asked for, however often it is asked."""

    folder: Path
    answers: list[Reply] = field(default_factory=list)
    """What to answer next; then 200."""
    done: list[str] = field(default_factory=list)
    is_slow: threading.Event | None = None
    """It does what it is asked at once, and answers when this is set."""
    service: Service = field(default_factory=lambda: Service(""))
    vm: Vm = WEB_0
    action: Action = REDEPLOY
    keeps_marks: bool = False
    sees_vms: bool = False

    def answer(self, asked: Asked) -> Reply:
        reply = self.answers.pop(0) if self.answers else Reply(json={"host": "hv-b"})
        key = asked.headers["idempotency-key"]
        if reply.status < 300 and key not in self.done:
            self.done.append(key)
        if self.is_slow is not None:
            self.is_slow.wait(10)
        return reply

    def driver(self) -> "TimedDriver":
        secret_file = self.folder / "hook.key"
        secret_file.write_text(f"whsec_{base64.b64encode(SECRET).decode()}\n")
        driver = TimedDriver(
            f"{self.service.url}/hook?team=ops",
            secret_file=secret_file,
            now=lambda: NOW,
            patience=timedelta(seconds=0.3 if self.is_slow is not None else 10),
        )
        driver.time = QuickTime()
        return driver

    def actions(self) -> int:
        return len(self.done)

    def break_(self) -> None:
        self.answers = [Reply(status=500)] * 100


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(tmp_path)
    with answering(receiver.answer) as receiver.service:
        yield receiver


class TestContract(DriverContract):
    @pytest.fixture
    def stage(self, receiver: Receiver) -> Receiver:
        return receiver


async def test_the_request_says_what_to_do_and_is_signed(receiver: Receiver) -> None:
    await receiver.driver().act(REDEPLOY, WEB_0, KEY, quiet)

    (asked,) = receiver.service.asked
    assert (asked.method, asked.path) == ("POST", "/hook?team=ops")
    assert asked.json == {
        "type": "forewarned.task",
        "timestamp": "2026-11-17T12:00:00Z",
        "data": {
            "key": KEY,
            "event_id": EVENT,
            "attempt": 3,
            "event_type": "Redeploy",
            "vm": "web-0",
            "vm_id": WEB_0.vm_id,
            "host": "hv-a",
            "duration_seconds": 9.0,
            "cordoned": ["hv-c", "hv-d"],
            "target": "hv-b",
        },
    }
    assert asked.headers["idempotency-key"] == asked.headers["webhook-id"] == KEY
    signed = f"{KEY}.{asked.headers['webhook-timestamp']}.".encode() + asked.body
    expected = base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    assert asked.headers["webhook-signature"] == f"v1,{expected}"


async def test_done_may_name_the_new_host(receiver: Receiver) -> None:
    driver = receiver.driver()

    await driver.act(REDEPLOY, WEB_0, KEY, quiet)

    seen = await driver.observe(WEB_0)
    assert (seen.intent, seen.issued, seen.host) == (KEY, True, "hv-b")


async def test_accepted_is_a_job_in_flight(receiver: Receiver) -> None:
    receiver.answers = [Reply(status=202)]
    driver = receiver.driver()

    await driver.act(REDEPLOY, WEB_0, KEY, quiet)

    seen = await driver.observe(WEB_0)
    assert seen.job == f"{receiver.service.url} has accepted the request"
    assert not seen.issued


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (301, RefusedError),
        (400, RefusedError),
        (404, RefusedError),
        (409, TryLaterError),
        (429, TryLaterError),
        (503, TryLaterError),
        (500, DriverError),
        (502, DriverError),
    ],
)
async def test_every_other_status_is_an_error(
    receiver: Receiver, status: int, error: type[DriverError]
) -> None:
    receiver.answers = [Reply(status=status, text="not today")]

    with pytest.raises(error, match=f"answered {status}: not today") as caught:
        await receiver.driver().act(REDEPLOY, WEB_0, KEY, quiet)

    assert caught.type is error


@pytest.mark.parametrize("content", ["", "whsec_$$$"])
async def test_a_secret_that_cannot_be_used_is_said_before_anything_is_sent(
    receiver: Receiver, content: str
) -> None:
    driver = receiver.driver()
    (receiver.folder / "hook.key").write_text(content)

    verdict = await driver.survey(REDEPLOY, WEB_0)
    with pytest.raises(RefusedError):
        await driver.act(REDEPLOY, WEB_0, KEY, quiet)

    assert not verdict.possible
    assert receiver.service.asked == []


# --- a whole task --------------------------------------------------------------------------------


@pytest.fixture
async def time() -> AsyncIterator[QuickTime]:
    async with QuickTime() as time:
        yield time


class TimedDriver(WebhookDriver):
    """No time passes for others while the service is asked."""

    time: QuickTime

    @override
    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        with self.time.stopped():
            await super().act(action, vm, key, progress)


async def carry_out(
    receiver: Receiver, time: QuickTime, desk: MemoryDesk, *, on_doubt: OnDoubt = OnDoubt.REPEAT
) -> None:
    (assignment,) = await desk.claim(limit=1, patience=timedelta(0))
    driver = receiver.driver()
    driver.time = time
    equipment = Equipment(
        desk=desk,
        driver=driver,
        slots=Slots(Limits()),
        dry_run=False,
        monotonic=time.monotonic,
        sleep=time.sleep,
    )
    procedure = Procedure(action=REDEPLOY, timeout=timedelta(hours=1), retries=5, on_doubt=on_doubt)
    await Attempt(assignment, procedure, equipment).run()


def a_desk(time: QuickTime) -> tuple[MemoryDesk, Kept]:
    desk = MemoryDesk(monotonic=time.monotonic)
    return desk, desk.put(EventType.REDEPLOY)


async def test_a_service_that_answers_late_is_asked_again_and_does_it_once(
    receiver: Receiver, time: QuickTime
) -> None:
    """I22: its answer came too late, so it is not known to have done it."""
    receiver.is_slow = threading.Event()
    desk, task = a_desk(time)

    driver = receiver.driver()
    with pytest.raises(DriverError, match="did not answer within"):
        await driver.act(REDEPLOY, WEB_0, f"{EVENT}/web-0", quiet)
    receiver.is_slow.set()
    await carry_out(receiver, time, desk)

    assert task.state == "Done"
    assert task.after is not None
    assert task.after.host == "hv-b"
    assert receiver.done == [f"{EVENT}/web-0"]
    assert len(receiver.service.asked) == 2


async def test_a_service_that_fails_is_asked_again_with_the_same_key(
    receiver: Receiver, time: QuickTime
) -> None:
    receiver.answers = [Reply(status=500), Reply(status=502), Reply(status=429)]
    desk, task = a_desk(time)

    await carry_out(receiver, time, desk)

    assert task.state == "Done"
    assert {asked.headers["idempotency-key"] for asked in receiver.service.asked} == {
        f"{EVENT}/web-0"
    }
    assert len(receiver.service.asked) == 4


async def test_a_service_that_only_fails_leaves_it_to_an_operator(
    receiver: Receiver, time: QuickTime
) -> None:
    receiver.break_()
    desk, task = a_desk(time)

    await carry_out(receiver, time, desk)

    assert (task.state, task.unharmed) == ("Stuck", False)
    assert "answered 500" in task.error
    assert len(receiver.service.asked) == 6


async def test_a_service_that_would_do_it_twice_is_not_asked_twice(
    receiver: Receiver, time: QuickTime
) -> None:
    receiver.break_()
    desk, task = a_desk(time)

    await carry_out(receiver, time, desk, on_doubt=OnDoubt.STOP)

    assert task.state == "Stuck"
    assert len(receiver.service.asked) == 1


async def test_a_service_that_refuses_has_harmed_no_one(
    receiver: Receiver, time: QuickTime
) -> None:
    receiver.answers = [Reply(status=403, text="not in the change window")] * 100
    desk, task = a_desk(time)

    await carry_out(receiver, time, desk)

    assert (task.state, task.unharmed) == ("Failed", True)
    assert "not in the change window" in task.error


async def test_a_service_that_never_reports_leaves_it_to_an_operator(
    receiver: Receiver, time: QuickTime
) -> None:
    receiver.answers = [Reply(status=202)]
    desk, task = a_desk(time)

    await carry_out(receiver, time, desk)

    assert (task.state, task.unharmed) == ("Stuck", False)
    assert task.error == "it was not carried out within 1h"
    assert len(receiver.service.asked) == 1


async def test_a_service_that_reports_by_itself_ends_the_attempt(
    receiver: Receiver, time: QuickTime
) -> None:
    receiver.answers = [Reply(status=202)]
    desk, task = a_desk(time)

    def report(step: str) -> None:
        if step == "after begin":
            # As the server does when the service's POST arrives.
            task.state = "Done"

    desk.step = report
    await carry_out(receiver, time, desk)

    assert task.state == "Done"
    assert task.error == ""
    assert time.monotonic() < timedelta(minutes=1)


def test_a_table_has_an_action_for_each_type_it_names(tmp_path: Path) -> None:
    table = WebhookTable(
        url="https://ops.example/hook", secret_file=tmp_path, types=(EventType.REBOOT,)
    )

    procedures = table.procedures()

    assert list(procedures) == [EventType.REBOOT]
    assert procedures[EventType.REBOOT].on_doubt is OnDoubt.REPEAT
