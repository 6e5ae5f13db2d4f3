"""Faults with the writer in one process and VMs at another."""

import asyncio

import pytest

from forewarned.core.ids import ResourceName
from forewarned.service.faults import Fault, FaultKind, FaultMethod
from tests.feed.joined import WEB, Poller, Writer, polling, until

BROKEN = Fault(kind=FaultKind.STATUS, status=500, times=3)
GET = FaultMethod.GET

pytestmark = pytest.mark.anyio


async def test_a_poller_hears_of_faults_there_are_and_of_new_ones(
    writer: Writer, poller: Poller
) -> None:
    added = writer.faults.add(BROKEN).fault

    async with polling(writer) as newcomer:
        assert newcomer.faults.active == (added,)
        await writer.feed.sync()
        assert poller.faults.active == (added,)


async def test_several_pollers_use_a_fault_up_together(writer: Writer, poller: Poller) -> None:
    writer.faults.add(BROKEN)
    async with polling(writer) as other:
        await writer.feed.sync()

        taken = await asyncio.gather(*(each.faults.take(WEB, GET) for each in (poller, other) * 4))

        assert sum(fault is not None for fault in taken) == BROKEN.times
        assert writer.faults.show()[0].used == BROKEN.times
        await until(lambda: not poller.faults.active and not other.faults.active)


async def test_whom_no_fault_is_for_asks_nobody(writer: Writer, poller: Poller) -> None:
    writer.faults.add(Fault(kind=FaultKind.RESET, vm=ResourceName("report")))
    await writer.feed.sync()
    poller.asking.close()

    assert await poller.faults.take(WEB, GET) is None


async def test_faults_end_with_the_writer_that_had_them(writer: Writer, poller: Poller) -> None:
    writer.faults.add(BROKEN)
    await writer.feed.sync()

    await writer.end()
    await until(lambda: not poller.asking.is_open)
    assert await poller.faults.take(WEB, GET) is None
    await writer.begin()
    await until(lambda: poller.snapshots == 2)

    assert poller.faults.active == ()
