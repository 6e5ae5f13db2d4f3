"""What callers of a store are answered, as they tell it."""

from collections.abc import Awaitable, Callable

from forewarned.core.errors import RefusalError
from forewarned.service.errors import StoreUnavailableError, UnknownOutcomeError
from tools.crash_points.subject import ACKED, ASKED, REFUSED, UNKNOWN, Tell


async def ask(what: str, request: Callable[[], Awaitable[object]], tell: Tell) -> bool:
    """Whether it is acknowledged. It is asked for once more if it is refused, as clients do."""
    for _ in range(2):
        tell(f"{ASKED} {what}")
        try:
            await request()
        except UnknownOutcomeError as error:
            tell(f"{UNKNOWN} {what}: {error}")
            return False
        except StoreUnavailableError as error:
            tell(f"{REFUSED} {what}: {error}")
        except RefusalError:
            # What it was about has been refused before.
            return False
        else:
            tell(f"{ACKED} {what}")
            return True
    return False
