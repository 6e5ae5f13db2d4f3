"""Why a request is turned down, before anything says what that is in HTTP."""

from dataclasses import dataclass
from enum import StrEnum, auto


class Reason(StrEnum):
    MALFORMED = auto()
    """Not HTTP/1.x as we take it. The connection can't be trusted any further."""
    WRONG_PROTOCOL = auto()
    HEADERS_TOO_LARGE = auto()
    BODY_TOO_LARGE = auto()
    TOO_SLOW = auto()
    WRONG_HOST = auto()
    FORWARDED = auto()
    FROM_A_PAGE = auto()
    UNKNOWN_PATH = auto()
    WRONG_METHOD = auto()
    BAD_QUERY = auto()
    NO_METADATA_HEADER = auto()
    WRONG_VERSION = auto()
    WRONG_FORMAT = auto()
    BAD_BODY = auto()
    UNKNOWN_ADDRESS = auto()
    UNKNOWN_VM = auto()
    UNKNOWN_EVENT = auto()
    TOO_MANY_REQUESTS = auto()
    TOO_MANY_CONNECTIONS = auto()
    UNAVAILABLE = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    reason: Reason
    message: str
    newest_versions: tuple[str, ...] = ()
    """The api-versions to use instead, newest first."""
    allowed: str = ""
    """The methods this path knows."""
    oauth_error: str = ""
    """OAuth's word for it, where the answer has OAuth's shape; empty where it does not."""
    retry_after: int | None = None
    """Seconds; None where trying again would not help."""
