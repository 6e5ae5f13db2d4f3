"""Certificates of the server's own authority, renewed in time while a server runs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final

from forewarned.security.certificates import CertificateError

_log = logging.getLogger(__name__)

LOOKED_AT_EVERY: Final = timedelta(days=1)


@asynccontextmanager
async def renewed(
    renew: Callable[[], Awaitable[object]], *, every: timedelta = LOOKED_AT_EVERY
) -> AsyncIterator[None]:
    """Call `renew` again and again, while the block runs. It may raise CertificateError."""
    renewal = asyncio.create_task(_renew(renew, every))
    try:
        yield
    finally:
        renewal.cancel()
        with suppress(asyncio.CancelledError):
            await renewal


async def _renew(renew: Callable[[], Awaitable[object]], every: timedelta) -> None:
    while True:
        await asyncio.sleep(every.total_seconds())
        try:
            await renew()
        except CertificateError as error:
            # From the first attempt on, the one that is presented is valid for another month.
            _log.error("can't renew the certificate", extra={"why": str(error)})
