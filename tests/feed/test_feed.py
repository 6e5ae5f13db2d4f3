"""Writer and pollers together, over a real socket."""

import asyncio
import contextlib
import stat
from collections.abc import AsyncIterator
from typing import Final

import pytest

from forewarned.core.errors import UnknownEventError
from forewarned.feed.frames import frame
from forewarned.feed.poller_end import connecting, socket_path
from forewarned.feed.protocol import (
    Activate,
    Committed,
    FromWriter,
    Granted,
    Hello,
    SnapshotEnd,
    Sync,
    Synced,
    decode_from_writer,
    encode,
)
from forewarned.feed.writer_end import PATIENCE
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.fleet.declaration import FleetPlan, VirtualMachine
from forewarned.service.records import Caller, News
from tests.builders import HOUR, NOON, OPERATOR, event_id
from tests.feed.joined import REPORT, WEB, Poller, Writer, polling, until

ADDRESS: Final = "10.0.0.1"


async def activate(poller: Poller, name: str = WEB) -> None:
    await poller.reader.activate(poller.caller(name), address=ADDRESS)


async def test_a_poller_knows_the_fleet_and_its_documents(poller: Poller) -> None:
    caller = poller.directory.by_address(ADDRESS)

    assert caller == poller.caller(WEB)
    assert poller.incarnation() == 1
    assert poller.clock.now() == NOON


async def test_a_scope_that_was_activated_is_shown_as_active_when_that_is_answered(
    poller: Poller,
) -> None:
    """Commit, tell, answer."""
    await activate(poller)

    page = poller.board.page(poller.caller().scope_id)
    assert page is not None
    assert page.is_active


async def test_an_event_that_was_approved_is_shown_as_started_when_that_is_answered(
    writer: Writer, poller: Poller
) -> None:
    """Commit, tell, answer."""
    await activate(poller)
    record = await writer.schedule()

    await poller.approver.approve([record.event.id], caller=poller.caller(), address=ADDRESS)

    page = poller.board.page(poller.caller().scope_id)
    assert page is not None
    assert [event.not_before for event in page.document.events] == [None]


async def test_a_refusal_is_the_writers_own(writer: Writer, poller: Poller) -> None:
    """I12: a foreign id gets the words that one which does not exist gets."""
    await activate(poller, REPORT)
    foreign = (await writer.schedule(REPORT)).event.id

    for wrong in (foreign, event_id(99)):
        with pytest.raises(UnknownEventError, match=f"event {wrong} was not found"):
            await poller.approver.approve([wrong], caller=poller.caller(WEB), address=ADDRESS)


async def test_a_vm_can_be_asked_about(poller: Poller) -> None:
    about = await poller.reader.about(WEB)

    assert about is not None
    assert about.binding.address == ADDRESS
    assert about.resource.name == WEB
    assert await poller.reader.about(type(WEB)("nobody")) is None


async def test_every_poller_is_in_step_after_a_sync(writer: Writer, poller: Poller) -> None:
    """I25."""
    async with polling(writer) as other:
        await activate(poller)
        await writer.schedule()

        await writer.feed.sync()

        assert poller.incarnation() == other.incarnation() == 2


async def test_a_vm_that_joins_the_fleet_is_known_and_one_that_leaves_is_not(
    writer: Writer, poller: Poller
) -> None:
    plan = FleetPlan(vms=(VirtualMachine(name="db", address="10.0.0.2"),))

    await writer.use_cases.fleet.apply(plan, by=OPERATOR, prune=True)
    await writer.feed.sync()

    assert poller.directory.by_name("report") is None
    assert poller.directory.by_address("10.0.0.2") == poller.caller("db")
    assert poller.incarnation("db") == 1


async def test_pollers_know_the_fleets_first_vm_whoever_comes_and_goes(
    writer: Writer, poller: Poller
) -> None:
    seen = [poller.directory.first()]
    for plan in ((REPORT,), (REPORT, WEB), (WEB,)):
        vms = tuple(VirtualMachine(name=name) for name in plan)
        await writer.use_cases.fleet.apply(FleetPlan(vms=vms), by=OPERATOR, prune=True)
        await writer.feed.sync()
        seen.append(poller.directory.first())
    async with polling(writer) as late:
        seen.append(late.directory.first())

    assert [each and each.name for each in seen] == [WEB, REPORT, WEB, WEB, WEB]


async def test_polls_count_as_read_from_before_the_clock_is_moved(
    writer: Writer, poller: Poller
) -> None:
    """I28: 24 hours of silence, and not one less."""
    await activate(poller)
    for _ in range(3):
        poller.reader.seen(poller.caller().scope_id, poller.caller().name)
        await writer.use_cases.clock_control.step(23 * HOUR)
    await writer.feed.sync()

    page = poller.board.page(poller.caller().scope_id)
    assert page is not None
    assert page.is_active


async def test_the_writer_knows_which_vm_read_last(writer: Writer, poller: Poller) -> None:
    await activate(poller)
    poller.reader.seen(poller.caller().scope_id, poller.caller().name)

    await writer.feed.sync()

    view = await writer.use_cases.fleet.show_scope(poller.caller().scope_id)
    assert view.last_read_by == poller.caller().name


async def test_a_clock_that_is_moved_is_moved_for_pollers_too(
    writer: Writer, poller: Poller
) -> None:
    await writer.use_cases.clock_control.step(HOUR)
    await writer.feed.sync()

    assert poller.clock.now() == NOON + HOUR


async def test_what_pollers_count_is_added_up(writer: Writer, poller: Poller) -> None:
    async with polling(writer) as other:
        poller.counts.documents += 3
        other.counts.documents += 4
        await writer.feed.sync()
        poller.counts.documents += 1
        await writer.feed.sync()

    assert writer.feed.take_counts() == {"documents": 8}
    assert writer.feed.take_counts() == {}


async def test_without_a_writer_documents_stay_and_nothing_is_granted(
    writer: Writer, poller: Poller
) -> None:
    """I14, I24."""
    await writer.end()
    await until(lambda: not poller.asking.is_open)

    assert poller.incarnation() == 1
    with pytest.raises(StoreUnavailableError):
        await activate(poller)
    with pytest.raises(StoreUnavailableError):
        await poller.approver.approve([event_id(1)], caller=poller.caller(), address=ADDRESS)
    with pytest.raises(StoreUnavailableError):
        await poller.reader.about(WEB)


async def test_a_writer_that_comes_back_is_found_and_followed(
    writer: Writer, poller: Poller
) -> None:
    """I25."""
    await activate(poller)
    await writer.end()
    await until(lambda: not poller.asking.is_open)
    await writer.begin()
    await writer.schedule()

    await until(lambda: poller.snapshots == 2)
    await writer.schedule()
    await writer.feed.sync()

    assert poller.incarnation() == 3


async def test_a_poller_that_finds_a_gap_takes_a_new_snapshot(
    writer: Writer, poller: Poller
) -> None:
    """I25."""
    await activate(poller)
    writer.feed.sequence += 1

    await writer.schedule()
    await until(lambda: poller.snapshots == 2)

    assert poller.incarnation() == 2


async def test_commits_during_a_snapshot_are_neither_lost_nor_undone(writer: Writer) -> None:
    """I7, I25: they come while the poller is being told, at any moment of it."""
    async with polling(writer) as first:
        await activate(first)
    newcomers = [Poller(connecting(writer.folder)) for _ in range(10)]
    async with asyncio.timeout(60):
        for newcomer in newcomers:
            async with newcomer.receiver:
                record = await writer.schedule()
                await asyncio.sleep(0)
                await writer.use_cases.approvals.approve_from_outside(record.event.id, by=OPERATOR)
                await newcomer.receiver.first_snapshot()
                await writer.feed.sync()
                seen = newcomer.incarnation()
                scope = await writer.use_cases.engine.ask(
                    lambda snapshot: snapshot.load(record.scope_id)  # noqa: B023  # asked at once
                )
                assert seen == scope.incarnation


async def test_a_poller_that_says_nonsense_is_dropped_and_the_others_are_not(
    writer: Writer, poller: Poller
) -> None:
    reader, stream = await asyncio.open_unix_connection(socket_path(writer.folder))
    with contextlib.closing(stream):
        await until(lambda: writer.feed.links == 2)
        stream.write(frame(b"nonsense"))

        async with asyncio.timeout(30):
            await reader.read()

    await until(lambda: writer.feed.links == 1)
    assert poller.asking.is_open


async def test_a_poller_that_does_not_read_holds_nobody_up(writer: Writer, poller: Poller) -> None:
    """F2: a process that is stopped. It is waited for once, and then no more."""
    _, stream = await asyncio.open_unix_connection(socket_path(writer.folder), limit=1)
    with contextlib.closing(stream):
        await until(lambda: writer.feed.links == 2)
        await until(lambda: all(link.is_in_step for link in writer.feed._links))
        await writer.feed.sync()
        started = asyncio.get_running_loop().time()

        for _ in range(100):
            await writer.feed.sync()

        took = asyncio.get_running_loop().time() - started
        assert took < 50 * PATIENCE.total_seconds()
        assert poller.asking.is_open


async def test_only_the_servers_own_user_can_open_the_socket(writer: Writer) -> None:
    mode = (writer.folder / "feed.sock").stat().st_mode

    assert stat.S_IMODE(mode) == 0o600


async def test_a_change_stands_on_the_stream_before_its_answer(writer: Writer) -> None:
    """Commit, tell, answer, as the bytes have it."""
    scope_id = next(iter(await writer.use_cases.fleet.show())).scope.id
    reader, stream = await asyncio.open_unix_connection(socket_path(writer.folder))
    with contextlib.closing(stream):
        said = [message async for message in messages(reader, until=SnapshotEnd)]
        stream.write(frame(encode(Activate(1, Caller(name=WEB, scope_id=scope_id), ADDRESS))))

        answered = [message async for message in messages(reader, until=Granted)]

    assert isinstance(said[0], Hello)
    assert [type(message) for message in answered] == [Committed, Granted]


async def test_pollers_are_asked_once_for_all_who_come_while_they_are_asked_for_others(
    writer: Writer,
) -> None:
    """What a caller is told must be of after it has come: the answer under way is not enough."""
    reader, stream = await asyncio.open_unix_connection(socket_path(writer.folder))
    with contextlib.closing(stream):
        assert [message async for message in messages(reader, until=SnapshotEnd)]
        first = asyncio.create_task(writer.feed.sync())
        asked = [await _sync(reader)]
        others = [asyncio.create_task(writer.feed.sync()) for _ in range(9)]
        await asyncio.sleep(0)

        stream.write(frame(encode(Synced(asked[0]))))
        await first
        asked.append(await _sync(reader))
        were_done = [other.done() for other in others]
        stream.write(frame(encode(Synced(asked[1]))))
        await asyncio.gather(*others)
        last = asyncio.create_task(writer.feed.sync())
        asked.append(await _sync(reader))
        stream.write(frame(encode(Synced(asked[2]))))
        await last

    assert were_done == [False] * 9
    assert asked == [asked[0], asked[0] + 1, asked[0] + 2]


async def test_a_caller_that_leaves_takes_the_answer_from_no_other(
    writer: Writer, poller: Poller
) -> None:
    await activate(poller)
    leaving, staying = (asyncio.create_task(writer.feed.sync()) for _ in range(2))
    await asyncio.sleep(0)

    leaving.cancel()
    await staying

    assert leaving.cancelled()


async def _sync(stream: asyncio.StreamReader) -> int:
    """The number of the next Sync."""
    *_, last = [message async for message in messages(stream, until=Sync)]
    assert isinstance(last, Sync)
    return last.id


async def messages(
    stream: asyncio.StreamReader, *, until: type[FromWriter]
) -> AsyncIterator[FromWriter]:
    """What the writer says, up to the first message of a kind."""
    async with asyncio.timeout(30):
        while True:
            length = int.from_bytes(await stream.readexactly(4), "big")
            message = decode_from_writer(await stream.readexactly(length))
            yield message
            if isinstance(message, until):
                return


async def test_what_is_committed_is_shown_before_it_is_called_fresh(
    writer: Writer, poller: Poller
) -> None:
    """I7: `Fresh` vouches for every commit before it."""
    await activate(poller)
    before = poller.incarnation()
    await writer.schedule()
    writer.feed.hear_news(News(now=NOON, began=7))
    await until(lambda: poller.freshness == [7])

    assert poller.incarnation() > before
