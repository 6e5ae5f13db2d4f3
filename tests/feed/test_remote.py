"""What becomes of requests that the writer does not answer."""

import asyncio
from datetime import timedelta

import pytest

from forewarned.core.ids import ResourceName
from forewarned.feed.remote import RemoteReader, RemoteWriter
from forewarned.service.errors import StoreUnavailableError

pytestmark = pytest.mark.anyio


async def test_a_writer_that_hangs_is_given_up_as_unavailable() -> None:
    """I24"""
    asking = RemoteWriter(longest_wait=timedelta(0))
    sent = asyncio.Event()
    asking.open(lambda _: sent.set())
    asked = asyncio.create_task(RemoteReader(asking).about(ResourceName("web")))
    await sent.wait()

    asking.expire()

    with pytest.raises(StoreUnavailableError):
        await asked


async def test_a_request_that_still_has_time_is_left_alone() -> None:
    asking = RemoteWriter()
    sent = asyncio.Event()
    asking.open(lambda _: sent.set())
    asked = asyncio.create_task(RemoteReader(asking).about(ResourceName("web")))
    await sent.wait()

    asking.expire()

    assert not asked.done()
    asked.cancel()
    await asyncio.wait([asked])
