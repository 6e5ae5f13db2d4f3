"""Pages from templates. What comes from people is text, never markup: templates escape it.

Times are the server's, in UTC; what is shown of a span is what a form takes back.
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote
from weakref import WeakKeyDictionary

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from forewarned import __version__
from forewarned.config.durations import format_duration
from forewarned.console.names import segment
from forewarned.console.services import ConsoleServices
from forewarned.console.timeline.lanes import Lane
from forewarned.core.transitions import ACTIONS, action_in_words, cause_in_words
from forewarned.security.identities import Principal, Role
from forewarned.service.clock_control import ClockReading

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: with that, browsers send our own forms with the origin `null`.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_SHORT_ID: Final = 8
_ACTION_WORDS: Final = {
    action: words for action in sorted(ACTIONS) if (words := action_in_words(action)) != action
}
"""For scripts: of those that are not words themselves."""
# What pages say after a form was sent, by the word that its redirect carries.
_DONE: Final[Mapping[str, str]] = {
    "sent": "Done. The result is here, and in the history.",
    "nothing": "Done. It caused no event.",
    "saved": "Saved.",
    "tested": "The test message was delivered.",
    "redelivered": "Messages that were not delivered are being tried again now.",
    "removed": "Removed.",
    "upgraded": "The instances are on the latest model, or being upgraded to it.",
}


class Pages:
    """Renders a page with what every page shows: where we are, and what time it is."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services
        self._templates = Environment(
            loader=PackageLoader(__package__, "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            # An upgrade beneath a running server must not mix its templates with this code.
            auto_reload=False,
        )
        self._templates.filters.update(
            instant=instant,
            iso=iso,
            span=format_duration,
            whole_span=whole_span,
            until=until,
            short=lambda text: text[:_SHORT_ID],
            segment=segment,
            path=lambda text: quote(text, safe="/"),
            marked=marked,
            local=local,
            drawn=self._drawn,
            what=action_in_words,
            why=lambda cause, action: cause_in_words(action, cause),
        )
        self._templates.globals["action_words"] = _ACTION_WORDS
        self._lanes: WeakKeyDictionary[Lane, str] = WeakKeyDictionary()

    def page(
        self,
        request: Request,
        template: str,
        *,
        status: HTTPStatus = HTTPStatus.OK,
        **shown: Any,  # whatever the template names
    ) -> HTMLResponse:
        reading = self._services.use_cases.clock_control.show()
        principal = visitor(request)
        is_open = self._services.sessions is None

        def may(role: str) -> bool:
            return is_open or (principal is not None and principal.role.covers(Role(role)))

        text = self._templates.get_template(template).render(
            here=request.url.path,
            # Where a form of the bar leads back to: an address that has a page.
            back=request.url.path if request.method == "GET" else "/",
            done=_DONE.get(request.query_params.get("done", "")),
            clock=reading,
            clock_state=clock_state(reading),
            is_emulator=self._services.is_emulator,
            product_version=__version__,
            visitor=principal,
            may=may,
            # Visitors who are not signed in see nothing of the server, and no navigation.
            is_inside=is_open or principal is not None,
            **{"now": reading.now, **shown},
        )
        return HTMLResponse(text, status_code=status)

    def _drawn(self, lanes: Iterable[Lane]) -> Markup:
        return Markup("".join(map(self._lane, lanes)))  # noqa: S704  # by a template

    def _lane(self, lane: Lane) -> str:
        """Made once for each lane: of hundreds, a change is in one."""
        made = self._lanes.get(lane)
        if made is None:
            macros: Any = self._templates.get_template("_lane.html").module
            made = self._lanes[lane] = str(macros.draw(lane))
        return made


def clock_state(reading: ClockReading) -> str:
    if reading.is_real:
        return "real"
    return "running" if reading.speed else "paused"


# Pages name the same instants again and again, and to write one takes longer than to find it.
@lru_cache(maxsize=4_000)
def instant(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@lru_cache(maxsize=4_000)
def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def local(text: str, *, is_end: bool = False) -> str:
    """A time from a form, as the browser's field for it wants it, in UTC.

    A day alone begins with its first second, or ends with its last. What is no time stays out.
    """
    try:
        moment = datetime.fromisoformat(text)
        if is_end and ":" not in text:
            moment += timedelta(days=1, seconds=-1)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        return ""
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def ahead(moment: datetime, now: datetime) -> timedelta:
    """How long until then, in whole seconds."""
    return timedelta(seconds=int((moment - now).total_seconds()))


def whole_span(length: timedelta) -> str:
    """Without the parts of a second, which say nothing of what has been waiting."""
    return format_duration(timedelta(seconds=int(length.total_seconds())))


def until(moment: datetime, now: datetime) -> str:
    left = ahead(moment, now)
    if left < timedelta(0):
        return f"{format_duration(-left)} ago"
    return f"in {format_duration(left)}"


def marked(name: str, text: str) -> Markup:
    """The name, with what was looked for marked in it: all of it where only `casefold` sees why."""
    if not text:
        return escape(name)
    found = re.search(re.escape(text), name, re.IGNORECASE)
    begin, end = (0, len(name)) if found is None else found.span()
    mark = Markup("{}<mark>{}</mark>{}")
    return mark.format(name[:begin], name[begin:end], name[end:])


def indented(document: bytes) -> str:
    """JSON as people read it, with the fields in their order."""
    return json.dumps(json.loads(document), indent=2, ensure_ascii=False)


def visitor(request: Request) -> Principal | None:
    """Who is signed in; None if no one is, or if no sign-in is needed."""
    found: Principal | None = getattr(request.state, "visitor", None)
    return found
