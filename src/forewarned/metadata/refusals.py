"""Why a request is refused, before its HTTP status is decided."""

from dataclasses import dataclass
from enum import StrEnum, auto


class Reason(StrEnum):
    MALFORMED = auto()
    """Not HTTP/1.x as served here. The rest of the connection can't be trusted."""
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
    """The methods this path supports."""
    oauth_error: str = ""
    """OAuth's error code, if the answer has OAuth's shape; empty if not."""
    retry_after: int | None = None
    """Seconds; None if trying again would not help."""
