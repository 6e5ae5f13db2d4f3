"""Agents' readiness with the writer in one process and VMs at another."""

import pytest

from forewarned.core.errors import UnknownEventError
from forewarned.core.ids import EventId
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.readiness import Standing
from tests.builders import A
from tests.feed.joined import REPORT, WEB, Poller, Writer, polling, until

pytestmark = pytest.mark.anyio


async def announced(writer: Writer, poller: Poller) -> EventId:
    """An event of the first VM, whose scope is switched on as a first read does."""
    await poller.reader.activate(poller.caller(), address="")
    return (await writer.schedule()).event.id


async def test_what_is_said_at_one_poller_is_heard_at_another(
    writer: Writer, poller: Poller
) -> None:
    event_id = await announced(writer, poller)

    said = await poller.readiness.report(event_id, Standing.READY, caller=poller.caller())

    async with polling(writer) as other:
        heard = await other.readiness.reports(event_id, caller=other.caller())
    assert said == heard
    assert [(each.resource, each.standing) for each in heard] == [(WEB, Standing.READY)]


async def test_an_event_of_another_scope_is_as_unknown_as_one_that_never_was(
    writer: Writer, poller: Poller
) -> None:
    """I12"""
    event_id = await announced(writer, poller)
    stranger = poller.caller(REPORT)

    for each in (event_id, A):
        with pytest.raises(UnknownEventError, match=f"^event {each} was not found$"):
            await poller.readiness.reports(each, caller=stranger)
        with pytest.raises(UnknownEventError, match=f"^event {each} was not found$"):
            await poller.readiness.report(each, Standing.READY, caller=stranger)


async def test_without_a_writer_nobody_is_told_anything(writer: Writer, poller: Poller) -> None:
    event_id = await announced(writer, poller)
    await writer.end()
    await until(lambda: not poller.asking.is_open)

    with pytest.raises(StoreUnavailableError):
        await poller.readiness.report(event_id, Standing.READY, caller=poller.caller())
    await writer.begin()


async def test_a_new_writer_knows_it_again_after_a_beat(writer: Writer, poller: Poller) -> None:
    event_id = await announced(writer, poller)
    await poller.readiness.report(event_id, Standing.READY, caller=poller.caller())
    await writer.end()
    await writer.begin()
    await until(lambda: poller.snapshots == 2)

    assert await poller.readiness.reports(event_id, caller=poller.caller()) == ()
    again = await poller.readiness.report(event_id, Standing.READY, caller=poller.caller())
    assert [each.resource for each in again] == [WEB]
