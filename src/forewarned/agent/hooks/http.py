"""Calls an HTTP service. URL, headers and body may have placeholders."""

import json
from typing import Any, Final

from msgspec import field
from typing_extensions import override

from forewarned.agent.hooks import templates
from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.retries import VetoError
from forewarned.agent.hooks.table import HookTable
from forewarned.agent.model import Phase
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Answer, Request, secret, send
from forewarned.targets.urls import check_header, check_url, origin, without_secrets

# Any: what JSON is made of.
Body = str | dict[str, Any]

_METHODS: Final = "GET POST PUT PATCH DELETE HEAD OPTIONS"
_SUCCESSES: Final = tuple(range(200, 300))


class HttpHook(HookTable, frozen=True, kw_only=True):
    """Calls an HTTP service. No proxy is used, and redirects are not followed."""

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
    """A file with the certificate of the authority that signed the service's, if the system does
    not trust it.
    """

    def __post_init__(self) -> None:
        for url in (self.url, *([] if self.undo_url is None else [self.undo_url])):
            check_url(url)
        for method in (self.method, self.undo_method or self.method):
            if method not in _METHODS.split():
                raise ValueError(f"{method!r} is not one of {_METHODS}")
        for name, value in self.headers.items():
            check_header(name, value)
        texts = [self.url, self.undo_url, *self.headers.values(), self.body, self.undo_body]
        for text in templates.templates_in(texts):
            templates.check_template(text)

    @property
    @override
    def has_undo(self) -> bool:
        return self.undo_url is not None

    @override
    async def run(self, call: Call) -> str:
        return await self._ask(call, self.method, self.url, self.body)

    @override
    async def put_back(self, call: Call) -> str:
        if self.undo_url is None:
            return "there is no undo_url"
        body = self.body if self.undo_body is None else self.undo_body
        return await self._ask(call, self.undo_method or self.method, self.undo_url, body)

    @override
    async def check(self) -> list[str]:
        """Only whether it can be reached: the call itself may have any effect."""
        if self.bearer_file is not None:
            secret(self.bearer_file)
        asked = Request(method="OPTIONS", url=f"{origin(self.url)}/")
        await send(asked, ca_file=self.ca_file)
        return []

    @override
    def describe(self, phase: Phase) -> str:
        if phase is Phase.UNDO:
            if self.undo_url is None:
                return "nothing"
            method = self.undo_method or self.method
            return f"call {method} {without_secrets(self.undo_url)}"
        return f"call {self.method} {without_secrets(self.url)}"

    async def _ask(self, call: Call, method: str, url: str, body: Body) -> str:
        call.waiting_for(f"an answer from {origin(url)}")
        headers = {name: templates.fill_line(value, call) for name, value in self.headers.items()}
        names = {name.lower(): value for name, value in headers.items()}
        if self.bearer_file is not None:
            headers["Authorization"] = f"Bearer {secret(self.bearer_file)}"
        if isinstance(body, dict):
            content = json.dumps(templates.fill_json(body, call))
            if "content-type" not in names:
                headers["Content-Type"] = "application/json"
        elif "json" in names.get("content-type", ""):
            content = templates.fill_json_text(body, call)
        else:
            content = templates.fill(body, call)
        asked = Request(
            method=method,
            url=templates.fill_url(url, call),
            headers=headers,
            body=content.encode() if content else None,
        )
        answer = await send(asked, ca_file=self.ca_file)
        return self._judged(answer, origin(url))

    def _judged(self, answer: Answer, where: str) -> str:
        told = f"{where} answered {answer.status}"
        if answer.status in self.veto:
            raise VetoError(f"{told}: {answer.excerpt()}".removesuffix(": "))
        if answer.status not in (self.ok or _SUCCESSES):
            raise TargetError(f"{told}: {answer.excerpt()}".removesuffix(": "))
        return told
