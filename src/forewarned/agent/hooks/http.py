"""Calls an HTTP service. URL, headers and body may have placeholders."""

import json
from dataclasses import dataclass
from typing import Any, Final

from msgspec import field
from typing_extensions import override

from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.hooks.retries import RetryingHook, VetoError
from forewarned.agent.hooks.settings import HookSettings
from forewarned.agent.hooks.templates import (
    check_template,
    fill,
    fill_json,
    fill_json_text,
    fill_line,
    fill_url,
    templates_in,
)
from forewarned.agent.model import Phase
from forewarned.agent.targets.errors import TargetError
from forewarned.agent.targets.http import (
    Answer,
    Request,
    check_header,
    check_url,
    origin,
    secret,
    send,
    without_secrets,
)

# Any: what JSON is made of.
Body = str | dict[str, Any]

_METHODS: Final = "GET POST PUT PATCH DELETE HEAD OPTIONS"
_SUCCESSES: Final = tuple(range(200, 300))


class HttpSettings(HookSettings, frozen=True, kw_only=True):
    """Calls an HTTP service. Proxies and redirects are never followed."""

    url: str
    """The URL, with placeholders such as `{event_id}`."""
    method: str = "POST"
    """The HTTP method."""
    headers: dict[str, str] = field(default_factory=dict)
    """The request's headers, with placeholders."""
    body: Body = ""
    """Text, or a table that is sent as JSON; both with placeholders."""
    undo_url: str | None = None
    """The URL for the undo; without it there is no undo."""
    undo_method: str | None = None
    """The method for the undo; `method` if not given."""
    undo_body: Body | None = None
    """The body for the undo; `body` if not given."""
    ok: tuple[int, ...] = ()
    """Statuses that mean: done. Any 2xx if not given."""
    veto: tuple[int, ...] = ()
    """Statuses that mean: done, but don't approve."""
    bearer_file: str | None = None
    """A file with a token, sent as `Authorization: Bearer …`."""
    ca_file: str | None = None
    """The authority that signed the service's certificate, if it is not well known."""

    def __post_init__(self) -> None:
        for url in (self.url, *([] if self.undo_url is None else [self.undo_url])):
            check_url(url)
        for method in (self.method, self.undo_method or self.method):
            if method not in _METHODS.split():
                raise ValueError(f"{method!r} is not one of {_METHODS}")
        for name, value in self.headers.items():
            check_header(name, value)
        texts = [self.url, self.undo_url, *self.headers.values(), self.body, self.undo_body]
        for text in templates_in(texts):
            check_template(text)

    @property
    @override
    def has_undo(self) -> bool:
        return self.undo_url is not None

    @override
    def make(self, name: str) -> Hook:
        return RetryingHook(_Http(self), retries=self.retries)


@dataclass(frozen=True, slots=True)
class _Http:
    settings: HttpSettings
    retries_undo = False

    async def run(self, call: Call) -> str:
        settings = self.settings
        return await self._ask(call, settings.method, settings.url, settings.body)

    async def undo(self, call: Call) -> str:
        settings = self.settings
        if settings.undo_url is None:
            return "there is no undo_url"
        body = settings.body if settings.undo_body is None else settings.undo_body
        return await self._ask(
            call, settings.undo_method or settings.method, settings.undo_url, body
        )

    async def check(self) -> list[str]:
        """Only whether it can be reached: the call itself may have any effect."""
        if self.settings.bearer_file is not None:
            secret(self.settings.bearer_file)
        asked = Request(method="OPTIONS", url=f"{origin(self.settings.url)}/")
        await send(asked, ca_file=self.settings.ca_file)
        return []

    def describe(self, phase: Phase) -> str:
        settings = self.settings
        if phase is Phase.UNDO:
            if settings.undo_url is None:
                return "nothing"
            method = settings.undo_method or settings.method
            return f"call {method} {without_secrets(settings.undo_url)}"
        return f"call {settings.method} {without_secrets(settings.url)}"

    async def _ask(self, call: Call, method: str, url: str, body: Body) -> str:
        call.waiting_for(f"an answer from {origin(url)}")
        headers = {name: fill_line(value, call) for name, value in self.settings.headers.items()}
        names = {name.lower(): value for name, value in headers.items()}
        if self.settings.bearer_file is not None:
            headers["Authorization"] = f"Bearer {secret(self.settings.bearer_file)}"
        if isinstance(body, dict):
            content = json.dumps(fill_json(body, call))
            if "content-type" not in names:
                headers["Content-Type"] = "application/json"
        elif "json" in names.get("content-type", ""):
            content = fill_json_text(body, call)
        else:
            content = fill(body, call)
        asked = Request(
            method=method,
            url=fill_url(url, call),
            headers=headers,
            body=content.encode() if content else None,
        )
        answer = await send(asked, ca_file=self.settings.ca_file)
        return self._judged(answer, origin(url))

    def _judged(self, answer: Answer, where: str) -> str:
        told = f"{where} answered {answer.status}"
        if answer.status in self.settings.veto:
            raise VetoError(f"{told}: {answer.excerpt()}".removesuffix(": "))
        if answer.status not in (self.settings.ok or _SUCCESSES):
            raise TargetError(f"{told}: {answer.excerpt()}".removesuffix(": "))
        return told
