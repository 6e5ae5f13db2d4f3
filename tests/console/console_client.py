"""The console beside the control API, over the real use cases and a clock that stands still."""

import html
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from typing_extensions import override

from forewarned.clock import SystemClock, VirtualClock
from forewarned.console.ended_sessions import EndedSessions
from forewarned.console.services import ConsoleServices
from forewarned.console.sessions import LONGEST_IDLE, Sessions
from forewarned.control.fleet.wire import parse
from forewarned.control.http.access import Access, Identities
from forewarned.control.v1.metrics import Metrics
from forewarned.core import lifecycle
from forewarned.core.ids import ResourceName
from forewarned.core.model import Actor
from forewarned.core.tasks import ActuatorOf
from forewarned.runtime.admission import Admission
from forewarned.runtime.assembly import (
    Application,
    BoardDelivery,
    basis_of,
    new_session_id,
    simulated_timings,
)
from forewarned.runtime.edges import Edges, control_app
from forewarned.runtime.listeners.sockets import Addresses
from forewarned.runtime.settings import SETTINGS, ControlAccess, Mode, Resolved, Settings
from forewarned.security.identities import Role
from forewarned.security.signing_keys import SigningKeys
from forewarned.security.tokens import Tokens
from forewarned.service.engine import Engine
from forewarned.service.lifecycle.assignment import simulated
from forewarned.service.nodes import Nodes
from forewarned.service.ports import Store
from forewarned.service.records import Caller
from forewarned.service.use_cases import Basis, UseCases
from tests.builders import NOON, a_node_record
from tests.control.access_setup import Roster
from tests.control.control_api import FLEET, Breakable


class ConsoleClient:
    """A browser without eyes: pages as text, forms as fields."""

    def __init__(
        self,
        use_cases: UseCases,
        store: Breakable,
        services: ConsoleServices,
        http: httpx2.AsyncClient,
        door: "TokenAccess",
    ) -> None:
        self.use_cases = use_cases
        self.store = store
        self.services = services
        self.http = http
        self.door = door

    async def see(self, path: str, status: int = 200) -> str:
        """A page, with the headers that every page must have."""
        answer = await self.http.get(path)
        assert answer.status_code == status, answer.text
        assert_guarded(answer)
        return answer.text

    async def send(self, path: str, *pairs: tuple[str, str], **fields: str) -> httpx2.Response:
        answer = await self.http.post(
            path,
            content=str(httpx2.QueryParams([*pairs, *fields.items()])),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )
        assert_guarded(answer)
        return answer

    async def confirm(self, path: str, *pairs: tuple[str, str], **fields: str) -> httpx2.Response:
        """Send a form that wants to be looked at first: preview, then confirm what it showed."""
        shown = fingerprint(await self.send(path, *pairs, step="preview", **fields))
        return await self.send(path, *pairs, step="send", shown=shown, **fields)

    async def ask(self, path: str) -> Any:  # JSON, which tests look into
        answer = await self.http.get(path)
        assert answer.is_success, answer.text
        return answer.json()

    async def switch_on(self, *names: str) -> None:
        for name in names:
            about = await self.use_cases.activation.about(ResourceName(name))
            assert about is not None
            caller = Caller(name=about.binding.name, scope_id=about.binding.scope_id)
            await self.use_cases.activation.activate(caller, address=about.binding.address)

    async def events(self) -> list[Any]:
        shown: list[Any] = (await self.ask("/v1/events"))["events"]
        return shown


def assert_guarded(answer: httpx2.Response) -> None:
    policy = answer.headers["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert rules["form-action"] == "'self'"
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    marks = _Marks()
    marks.feed(answer.text)
    assert marks.inline == []


@dataclass
class TokenAccess:
    """What stands before the pages, with parts of it that tests move by hand."""

    roster: Roster = field(default_factory=Roster)
    seconds: float = 0.0
    sessions: Sessions | None = None

    async def admission(self, engine: Engine, settings: Settings, folder: Path) -> Admission:
        keys = SigningKeys(folder)
        await keys.prepare()
        tokens = Tokens(keys)
        identities = Identities(
            issuer=tokens, reader=tokens, principals=self.roster, audiences=(), vm_role=Role.READER
        )
        access = Access(identities, engine, monotonic=lambda: self.seconds)
        if settings.control_access is ControlAccess.TOKEN:
            self.sessions = Sessions(
                access,
                keys,
                EndedSessions(engine, kept=LONGEST_IDLE),
                new_id=new_session_id,
                now=lambda: NOON + timedelta(seconds=self.seconds),
            )
        return Admission(access=access, sessions=self.sessions, tls=None, control_is_tls=False)


class _Marks(HTMLParser):
    """Finds script and style that are in the page itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inline: list[str] = []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag == "style" or (tag == "script" and "src" not in names):
            self.inline.append(tag)
        self.inline += [name for name in names if name == "style" or name.startswith("on")]


def fingerprint(answer: httpx2.Response) -> str:
    """What a form has to send along to confirm what this page has shown."""
    found = re.search(r'name="shown" value="([^"]+)"', answer.text)
    assert found is not None, answer.text
    return found[1]


def text_of(page: str) -> str:
    """What people read of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


@asynccontextmanager
async def console_client(
    *,
    clock: VirtualClock | SystemClock | None = None,
    fleet: dict[str, Any] | None = None,
    mode: str = "emulator",
    access: str = "open",
    origin: str = "http://127.0.0.1:8170",
    actuator_of: ActuatorOf = simulated,
    basis: Basis | None = None,
    over: Callable[[Store], Store] = lambda store: store,
) -> AsyncIterator[ConsoleClient]:
    resolved = Resolved(
        settings=Settings(mode=Mode(mode), control_access=ControlAccess(access)),
        origin={setting.name: "default" for setting in SETTINGS},
        file=None,
    )
    settings = resolved.settings
    clock = clock or VirtualClock(NOON, speed=0)
    next_wake = partial(lifecycle.next_wake, rules=settings.rules())
    store = Breakable(None, clock, next_wake=next_wake, actuator_of=actuator_of)
    application = Application(
        over(store),
        clock,
        basis_of(settings) if basis is None else basis,
        BoardDelivery(),
        timings=simulated_timings(settings),
    )
    use_cases = application.use_cases
    with TemporaryDirectory() as folder:
        async with store, application, clock:
            plan = parse(FLEET if fleet is None else fleet)
            await use_cases.fleet.apply(plan, by=Actor(name="test"))
            door = TokenAccess()
            edges = Edges(
                application=application,
                resolved=resolved,
                addresses=Addresses(
                    metadata_url="http://127.0.0.1:8169", control_url=origin, arm_url=None
                ),
                admission=await door.admission(use_cases.engine, settings, Path(folder)),
                nodes=Nodes(a_node_record(), wall_clock=clock.now),
            )
            services = edges.console()
            api = edges.api(plan=None, metrics=Metrics(), take_counts=dict)
            app = control_app(api, services)
            transport = httpx2.ASGITransport(app, client=("127.0.0.1", 40_000))
            async with httpx2.AsyncClient(transport=transport, base_url=origin) as http:
                yield ConsoleClient(use_cases, store, services, http, door)
