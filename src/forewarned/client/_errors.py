"""The exceptions of `forewarned.client`.

ScheduledEventsError
├── EndpointNotFoundError   nothing on this machine says where scheduled events are
├── RefusedError            the service answered, and the answer is no
│   └── UnsupportedVersionError   it does not know the api-version
├── ProtocolError           the answer is not one that a scheduled events service gives
├── UnavailableError        no usable answer came in time, even after retries
└── ClosedError             the object has been closed

Invalid arguments raise a ValueError or a TypeError, as everywhere.
"""


class ScheduledEventsError(Exception):
    """What went wrong between a VM and its scheduled events."""


class EndpointNotFoundError(ScheduledEventsError):
    """The endpoint could not be found on this machine; `tried` lists where it was looked for."""

    def __init__(self, tried: tuple[str, ...]) -> None:
        looked = "; ".join(tried)
        super().__init__(f"found no endpoint for scheduled events: {looked}")
        self.tried = tried


class RefusedError(ScheduledEventsError):
    """The service refused the request to `url`, with `status` and `message`."""

    def __init__(self, status: int, message: str, *, url: str = "") -> None:
        answered = f"{url or 'the service'} answered {status}"
        super().__init__(f"{answered}: {message}" if message else answered)
        self.status = status
        self.message = message
        self.url = url


class UnsupportedVersionError(RefusedError):
    """The service does not know the api-version; `newest` are those that it offers instead."""

    def __init__(
        self, status: int, message: str, *, newest: tuple[str, ...], url: str = ""
    ) -> None:
        super().__init__(status, message, url=url)
        self.newest = newest
        self.add_note(f"api-versions that the service offers: {', '.join(newest)}")


class ProtocolError(ScheduledEventsError):
    """The answer is not one that a scheduled events service gives.

    It is malformed, for example, or comes from a proxy or a captive portal.
    """


class UnavailableError(ScheduledEventsError):
    """No usable answer came in time; waiting longer may help."""


class ClosedError(ScheduledEventsError):
    """The object has been closed: it sends no more requests. A watch simply ends."""

    def __init__(self) -> None:
        super().__init__("this ScheduledEvents object is closed")
