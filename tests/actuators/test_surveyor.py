"""What drains ask, and what an actuator answers."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from typing_extensions import override

from forewarned.actuators.actuator import Equipped
from forewarned.actuators.decision import OnDoubt, Procedure
from forewarned.actuators.driver import Action, DriverError, Effect, Progress, Sighting, Verdict, Vm
from forewarned.actuators.http_desk import HttpDesk, Server
from forewarned.actuators.slots import Limits
from forewarned.actuators.surveyor import Question, Questions, Surveyor
from forewarned.clock import VirtualClock
from forewarned.core.model import EventType
from tests.actuators.served import rack1, served
from tests.builders import NOON
from tests.control.control_api import control_api

VM = Vm(name="web", vm_id="", host="hv-a")
CAN_MOVE = Question(type=EventType.FREEZE, host="hv-a", vm=VM)
WHICH = Question(type=EventType.FREEZE, host="hv-a", vm=None)


class Platform:
    async def survey(self, action: Action, vm: Vm) -> Verdict:
        reason = f"{action.do} {vm.name}" + (f", or {action.otherwise}" if action.otherwise else "")
        return Verdict(possible=True, reason=reason, target="hv-b")

    async def observe(self, _: Vm) -> Sighting:
        return Sighting()

    async def mark(self, vm: Vm, key: str) -> None: ...
    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None: ...
    async def abort(self, vm: Vm, key: str) -> None: ...


class Unreachable(Platform):
    @override
    async def survey(self, action: Action, vm: Vm) -> Verdict:
        raise DriverError("hv-a does not answer")

    async def vms_on(self, host: str) -> list[str]:
        raise DriverError(f"{host} does not answer")


class Listing(Platform):
    async def vms_on(self, host: str) -> list[str]:
        return [f"a VM of {host}"]


@dataclass
class Desk:
    asked: list[Question]
    verdicts: list[Verdict] = field(default_factory=list)
    listings: list[Sequence[str] | str | None] = field(default_factory=list)
    cordoned: set[str] = field(default_factory=set)

    async def questions(self) -> Questions:
        return Questions(questions=tuple(self.asked), cordoned=frozenset(self.cordoned))

    async def answer_survey(self, _: str, __: Vm, verdict: Verdict) -> None:
        self.verdicts.append(verdict)

    async def answer_listing(self, _: str, vms: Sequence[str] | None, *, error: str = "") -> None:
        self.listings.append(error or vms)


def equipped_with(platform: Platform, action: Action) -> Equipped:
    procedure = Procedure(action=action, timeout=timedelta(minutes=1), on_doubt=OnDoubt.REPEAT)
    return Equipped(
        driver=platform,
        procedures={action.type: procedure},
        limits=Limits(per_host=1, per_target=1, total=1),
    )


MOVES = Action(type=EventType.FREEZE, do="live-migrate", effect=Effect.MOVES)


async def answers(platform: Platform, *questions: Question, effect: Effect = Effect.MOVES) -> Desk:
    desk = Desk(list(questions))
    action = Action(
        type=EventType.FREEZE,
        do="live-migrate",
        effect=effect,
        otherwise="hold",
        otherwise_effect=Effect.HOLDS,
    )
    await Surveyor("rack1", equipped_with(platform, action), desk).answer_all()
    return desk


async def test_a_drain_is_told_what_the_driver_says_of_a_vm() -> None:
    """Without the alternative, which would leave the VM where it is."""
    desk = await answers(Platform(), CAN_MOVE)

    assert desk.verdicts == [Verdict(possible=True, reason="live-migrate web", target="hv-b")]


async def test_what_moves_no_vm_is_no_answer_to_a_drain() -> None:
    held = await answers(Platform(), CAN_MOVE, effect=Effect.HOLDS)
    cold = await answers(Platform(), Question(type=EventType.REDEPLOY, host="hv-a", vm=VM))

    assert [each.possible for each in (*held.verdicts, *cold.verdicts)] == [False, False]
    assert held.verdicts[0].reason == "'live-migrate' for Freeze doesn't move VMs to another host"
    assert cold.verdicts[0].reason == "actuator 'rack1' has no action for Redeploy"


async def test_a_platform_that_fails_can_not_move_a_vm_and_tells_why_it_lists_nothing() -> None:
    desk = await answers(Unreachable(), CAN_MOVE, WHICH)

    assert desk.verdicts == [Verdict(possible=False, reason="hv-a does not answer")]
    assert desk.listings == ["hv-a does not answer"]


async def test_a_host_is_listed_where_the_driver_can() -> None:
    assert (await answers(Listing(), WHICH)).listings == [["a VM of hv-a"]]
    assert (await answers(Platform(), WHICH)).listings == [None]


class Cordoned(Platform):
    """One that can close hosts, but fails at first."""

    def __init__(self) -> None:
        self.told: list[set[str]] = []
        self.is_broken = True
        self.refused: dict[str, str] = {}

    async def cordon(self, hosts: Collection[str]) -> Mapping[str, str]:
        self.told.append(set(hosts))
        if self.is_broken:
            raise DriverError("it does not answer")
        return self.refused

    @override
    async def survey(self, action: Action, vm: Vm) -> Verdict:
        return Verdict(possible=True, reason=f"not to {sorted(action.cordoned)}")


async def test_a_platform_is_told_which_hosts_are_drained_until_it_has_heard() -> None:
    """What an earlier actuator has closed is lifted as well: it is told at the start.

    While others may still come to a host, none of its VMs is said to be movable.
    """
    elsewhere = replace(CAN_MOVE, host="hv-b", vm=replace(VM, host="hv-b"))
    platform, desk = Cordoned(), Desk([CAN_MOVE, elsewhere], cordoned={"hv-a"})
    surveyor = Surveyor("rack1", equipped_with(platform, MOVES), desk)

    await surveyor.answer_all()
    platform.is_broken = False
    await surveyor.answer_all()
    await surveyor.answer_all()
    desk.cordoned = set()
    await surveyor.answer_all()

    assert platform.told == [{"hv-a"}, {"hv-a"}, set()]
    assert desk.verdicts[:3] == [
        Verdict(possible=False, reason="hv-a can't be cordoned: it does not answer"),
        Verdict(possible=True, reason="not to ['hv-a']"),
        Verdict(possible=True, reason="not to ['hv-a']"),
    ]


async def test_a_host_that_can_not_be_closed_holds_up_no_other() -> None:
    other = replace(CAN_MOVE, host="hv-b", vm=replace(VM, host="hv-b"))
    platform, desk = Cordoned(), Desk([CAN_MOVE, other], cordoned={"hv-a", "hv-b"})
    platform.is_broken, platform.refused = False, {"HV-A": "no permission", "hv-z": "it is away"}
    surveyor = Surveyor("rack1", equipped_with(platform, MOVES), desk)

    await surveyor.answer_all()
    await surveyor.answer_all()

    assert [each.reason for each in desk.verdicts[:2]] == [
        "hv-a can't be cordoned: no permission",
        "not to ['hv-a', 'hv-b']",
    ]
    assert len(platform.told) == 2


class Slow(Platform):
    """One that answers nothing before it was asked for eight VMs."""

    def __init__(self) -> None:
        self.under_way = 0
        self.most = 0
        self.is_enough = asyncio.Event()

    @override
    async def survey(self, action: Action, vm: Vm) -> Verdict:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        if self.under_way == 8:
            self.is_enough.set()
        await self.is_enough.wait()
        self.under_way -= 1
        return Verdict(possible=True)


async def test_eight_vms_are_looked_at_at_once_and_no_more() -> None:
    platform = Slow()
    desk = await answers(platform, *[CAN_MOVE] * 20)

    assert [each.possible for each in desk.verdicts] == [True] * 20
    assert platform.most == 8


async def test_a_dry_run_closes_no_host() -> None:
    platform, desk = Cordoned(), Desk([], cordoned={"hv-a"})
    rehearsal = replace(equipped_with(platform, MOVES), dry_run=True)

    await Surveyor("rack1", rehearsal, desk).answer_all()

    assert platform.told == []


async def test_a_drain_asks_and_is_answered_over_the_control_api() -> None:
    async with (
        control_api(clock=VirtualClock(NOON, speed=0), actuator_of=rack1) as control,
        served(control) as url,
        HttpDesk(Server(url=url), actuator="rack1", holder="one") as desk,
    ):
        await control.switch_on("web")
        planning = await control.post("/v1/hosts/rack1/drain", {"dry_run": True})
        await Surveyor("rack1", equipped_with(Platform(), MOVES), desk).answer_all()
        planned = await control.get("/v1/hosts/rack1/drain")

        # Nobody asks any more: no failure.
        await desk.answer_survey("no-such-host", VM, Verdict(possible=True))
        await desk.answer_listing("rack1", None)

    assert planning["state"] == "Planning"
    assert planned["state"] == "Planned"
    assert {vm["target"] for vm in planned["vms"]} == {"hv-b"}
