"""Access to a listener with real tokens, and the principals who have them."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from forewarned.control.http.access import Access, Identities, OpenAccess, audiences_of, is_loopback
from forewarned.core.ids import ResourceName
from forewarned.security.identities import Bearer, Principal, Role
from forewarned.security.signing_keys import SigningKeys
from forewarned.security.tokens import Tokens
from forewarned.service.listings import HistoryFilter, HistoryRow
from tests.builders import NOON
from tests.control.control_api import ControlApi, control_api

ARM: Final = "https://localhost:8171"
AFAR: Final = "203.0.113.7"
SECRET: Final = "fw_secret"
CLIENT_ID: Final = "501b81b5-f2a9-4f1c-befa-61953503df89"


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def token_of(role: Role) -> str:
    return f"fw_{role}"


# One for each role, with a token; and a program that signs in.
PEOPLE: Final = (
    *(Principal(name=role.value, role=role, token_sha256=digest(token_of(role))) for role in Role),
    Principal(name="ci", role=Role.MAINTAINER, client_id=CLIENT_ID, secret_sha256=digest(SECRET)),
)


@dataclass
class Roster:
    people: Sequence[Principal] = PEOPLE
    revokes: bool = False
    """All of them, once somebody has been looked up."""

    def current(self) -> Sequence[Principal]:
        found = self.people
        if self.revokes:
            self.people = ()
        return found


@dataclass
class Times:
    """The machine's clock and its stopwatch, moved by hand."""

    now: datetime = NOON
    seconds: float = 0.0


@dataclass
class AccessSetup:
    access: Access
    door: Access | OpenAccess
    """The access itself, or what stands before it in an emulator."""
    tokens: Tokens
    steered: ControlApi
    roster: Roster
    times: Times = field(default_factory=Times)

    async def vm_token(self, name: str = "web", *, audience: str = ARM) -> str:
        """As the metadata listener would issue it."""
        about = await self.steered.activation.about(ResourceName(name))
        assert about is not None
        bearer = Bearer(
            subject=about.binding.name,
            object_id=about.binding.profile.vm_id,
            resource_path=f"/subscriptions/s/{name}",
        )
        return (await self.tokens.issue(bearer, audience=audience)).text

    async def refusals(self) -> list[HistoryRow]:
        """Newest first."""
        rows = await self.steered.services.engine.ask(
            lambda snapshot: snapshot.history(HistoryFilter(limit=1000))
        )
        return [row for row in rows if row.action == "refused"]


@asynccontextmanager
async def access_setup(
    folder: Path, *, open_on_loopback: bool = False, vm_role: Role = Role.APPROVER
) -> AsyncIterator[AccessSetup]:
    times, roster = Times(), Roster()
    keys = SigningKeys(folder)
    await keys.prepare()
    tokens = Tokens(keys, now=lambda: times.now)
    async with control_api() as steered:
        identities = Identities(
            issuer=tokens,
            reader=tokens,
            principals=roster,
            audiences=audiences_of(ARM, ["arm.example"]),
            vm_role=vm_role,
            now=lambda: times.now,
        )
        access = Access(identities, steered.services.engine, monotonic=lambda: times.seconds)
        door = OpenAccess(access, is_open_to=is_loopback) if open_on_loopback else access
        yield AccessSetup(access, door, tokens, steered, roster, times)
