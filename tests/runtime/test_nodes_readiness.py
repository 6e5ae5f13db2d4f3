"""Agents of one event that talk to different nodes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from forewarned.core.errors import UnknownEventError
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import EventSource, EventType
from forewarned.service.events.schedule import EventOrder
from forewarned.service.fleet.declaration import AvailabilitySet, FleetPlan, Member
from forewarned.service.readiness import ReadinessReport, Standing
from forewarned.service.records import Caller
from forewarned.service.use_cases import UseCases
from forewarned.storage.postgres.nodes.readiness import SharedReadiness
from tests.builders import OPERATOR
from tests.postgresql.databases import Database
from tests.runtime.running_nodes import running_nodes


class Site:
    """An availability set of two VMs, whose agents talk to one node each."""

    def __init__(self, use_cases: list[UseCases], database: Database) -> None:
        self.use_cases = use_cases
        self.database = database

    async def caller(self, vm: str) -> Caller:
        binding = await self.use_cases[0].engine.ask(lambda snapshot: snapshot.binding(vm))
        assert binding is not None
        return Caller(name=binding.name, scope_id=binding.scope_id)

    async def report(
        self, node: int, event: EventId, vm: str, standing: Standing
    ) -> tuple[ReadinessReport, ...]:
        readiness = self.use_cases[node].readiness
        return await readiness.report(event, standing, caller=await self.caller(vm))

    async def standings(self, node: int, event: EventId, vm: str) -> dict[str, Standing]:
        readiness = self.use_cases[node].readiness
        found = await readiness.reports(event, caller=await self.caller(vm))
        return {each.resource: each.standing for each in found}

    async def becomes(
        self, node: int, event: EventId, vm: str, wanted: dict[str, Standing]
    ) -> None:
        """Within the second that a node takes to write it, on a machine that may be busy."""
        async with asyncio.timeout(20):
            while await self.standings(node, event, vm) != wanted:  # noqa: ASYNC110  # no one tells
                await asyncio.sleep(0.05)

    def rows(self) -> int:
        [[number]] = self.database.ask("SELECT count(*) FROM readiness")
        return int(number)


def a_fleet(*members: str) -> FleetPlan:
    names = tuple(Member(name=ResourceName(name)) for name in members)
    return FleetPlan(
        availability_sets=(AvailabilitySet(name="db", update_domains=1, members=names),)
    )


@pytest.fixture
async def site(anyio_backend: object, database: Database, tmp_path: Path) -> AsyncIterator[Site]:
    async with running_nodes(database, tmp_path, 2) as nodes:
        use_cases = [each.application.use_cases for each in nodes.running]
        await use_cases[0].fleet.apply(a_fleet("vm1", "vm2"), by=OPERATOR)
        made = Site(use_cases, database)
        await use_cases[0].activation.activate(await made.caller("vm1"), address="")
        yield made


async def schedule(site: Site) -> EventId:
    names = (ResourceName("vm1"), ResourceName("vm2"))
    order = EventOrder(type=EventType.REBOOT, resources=names, source=EventSource.PLATFORM)
    [record] = await site.use_cases[0].scheduler.schedule(order, by=OPERATOR)
    return record.event.id


async def test_agents_of_two_nodes_hear_of_each_other(site: Site) -> None:
    event = await schedule(site)
    own = await site.report(0, event, "vm1", Standing.PREPARING)
    await site.report(1, event, "vm2", Standing.READY)

    assert [each.standing for each in own] == [Standing.PREPARING], "its own at once"
    both = {"vm1": Standing.PREPARING, "vm2": Standing.READY}
    await site.becomes(1, event, "vm2", both)
    await site.becomes(0, event, "vm1", both)
    [first, _] = await site.report(0, event, "vm1", Standing.READY)
    assert first.heard_at > own[0].heard_at
    await site.becomes(1, event, "vm2", {"vm1": Standing.READY, "vm2": Standing.READY})


async def test_a_node_prefers_the_newer_report_of_a_vm_that_has_gone_to_another(
    site: Site,
) -> None:
    event = await schedule(site)
    await site.report(0, event, "vm1", Standing.PREPARING)
    await site.report(1, event, "vm1", Standing.READY)
    other = site.use_cases[1].readiness
    assert isinstance(other, SharedReadiness)
    await other.write(prunes=False)

    assert await site.standings(0, event, "vm2") == {"vm1": Standing.READY}


async def test_a_vm_that_is_removed_takes_its_report_with_it(site: Site) -> None:
    event = await schedule(site)
    await site.report(0, event, "vm1", Standing.READY)
    await site.report(1, event, "vm2", Standing.READY)
    await site.becomes(0, event, "vm1", {"vm1": Standing.READY, "vm2": Standing.READY})

    await site.use_cases[0].fleet.apply(a_fleet("vm1"), by=OPERATOR, prune=True)

    await site.becomes(1, event, "vm1", {"vm1": Standing.READY})


async def test_reports_of_an_event_that_has_ended_are_removed(site: Site) -> None:
    event = await schedule(site)
    await site.report(0, event, "vm1", Standing.READY)
    await site.becomes(1, event, "vm2", {"vm1": Standing.READY})
    await site.use_cases[1].scheduler.cancel(event, reason="", by=OPERATOR)

    with pytest.raises(UnknownEventError):
        await site.standings(0, event, "vm1")
    async with asyncio.timeout(60):
        while await asyncio.to_thread(site.rows):  # noqa: ASYNC110  # no one tells
            await asyncio.sleep(0.1)
