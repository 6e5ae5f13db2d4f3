"""S13: who is signed in at the console, and for how long."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection

from forewarned.console.sessions import COOKIE, LONGEST_IDLE, PURPOSE, Sessions
from forewarned.security import tokens as tokens_module
from forewarned.security.identities import (
    BadTokenError,
    Bearer,
    InvalidTokenError,
    Principal,
    Role,
    RoleTooLowError,
)
from forewarned.security.signing_keys import SigningKeys
from tests.builders import NOON

ALICE = Principal(name="alice", role=Role.APPROVER, token_sha256="a1")
IDS = count(1)
BOB = Principal(name="bob", role=Role.READER, token_sha256="b2")


@dataclass
class Tokens:
    """Alice's token is `alice`, and so on."""

    people: list[Principal] = field(default_factory=lambda: [ALICE, BOB])
    seconds: float = 0.0

    async def recognize(self, token: str, *, address: str) -> Principal:
        for each in self.people:
            if each.name == token:
                return each
        raise InvalidTokenError("this token is unknown")

    def holder(self, token_sha256: str) -> Principal | None:
        return next((each for each in self.people if each.token_sha256 == token_sha256), None)

    async def require(self, principal: Principal, *, address: str, needs: Role) -> None:
        if not principal.role.covers(needs):
            raise RoleTooLowError(principal.name, needs=needs, has=principal.role)

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)


@dataclass
class Ended:
    ids: set[str] = field(default_factory=set)

    async def has(self, session_id: str) -> bool:
        return session_id in self.ids

    async def add(self, session_id: str, *, at: datetime) -> None:
        self.ids.add(session_id)


@pytest.fixture
async def keys(anyio_backend: object, tmp_path: Path) -> SigningKeys:
    made = SigningKeys(tmp_path)
    await made.prepare()
    return made


def a_table(tokens: Tokens, keys: SigningKeys, ended: Ended | None = None) -> Sessions:
    return Sessions(tokens, keys, ended or Ended(), new_id=lambda: str(next(IDS)), now=tokens.now)


def browser(session_id: str, *, scheme: str = "http", name: str = COOKIE) -> HTTPConnection:
    return HTTPConnection(
        {
            "type": "http",
            "scheme": scheme,
            "path": "/",
            "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"cookie", f"{name}={session_id}".encode())],
        }
    )


async def test_whoever_signs_in_is_known_by_the_cookie_and_by_no_other(keys: SigningKeys) -> None:
    sessions = a_table(Tokens(), keys)

    alice = await sessions.sign_in("alice", address="")
    bob = await sessions.sign_in("bob", address="")

    assert alice != bob
    assert await sessions.holder(browser(alice)) == ALICE
    assert await sessions.holder(browser(bob)) == BOB
    for stranger in ("", "3", alice + bob):
        assert await sessions.holder(browser(stranger)) is None
    assert await sessions.holder(browser(alice, name="other")) is None


async def test_over_tls_the_cookie_has_a_name_that_no_neighbour_can_set(keys: SigningKeys) -> None:
    sessions = a_table(Tokens(), keys)
    alice = await sessions.sign_in("alice", address="")

    assert await sessions.holder(browser(alice, scheme="https")) is None
    assert await sessions.holder(browser(alice, scheme="https", name=f"__Host-{COOKIE}")) == ALICE


async def test_a_wrong_token_opens_nothing(keys: SigningKeys) -> None:
    sessions = a_table(Tokens(), keys)

    with pytest.raises(InvalidTokenError):
        await sessions.sign_in("eve", address="")


async def test_a_revoked_token_ends_its_sessions_at_once(keys: SigningKeys) -> None:
    """As does a new token for the same name."""
    tokens = Tokens()
    sessions = a_table(tokens, keys)
    alice = await sessions.sign_in("alice", address="")
    here = browser(alice)
    assert await sessions.holder(here) == ALICE

    tokens.people = [Principal(name="alice", role=Role.ADMIN, token_sha256="new"), BOB]

    assert await sessions.holder(here) is None, "a stream that is open"
    assert await sessions.holder(browser(alice)) is None


async def test_another_role_is_the_sessions_at_once(keys: SigningKeys) -> None:
    tokens = Tokens()
    sessions = a_table(tokens, keys)
    alice = await sessions.sign_in("alice", address="")

    tokens.people = [Principal(name="alice", role=Role.READER, token_sha256="a1")]

    found = await sessions.holder(browser(alice))
    assert found is not None
    assert found.role is Role.READER


async def test_a_session_ends_when_it_was_idle_for_too_long(keys: SigningKeys) -> None:
    tokens = Tokens()
    sessions = a_table(tokens, keys)
    alice = await sessions.sign_in("alice", address="")
    bob = await sessions.sign_in("bob", address="")
    page = browser(bob)
    assert await sessions.holder(page) == BOB

    tokens.seconds += LONGEST_IDLE.total_seconds() - 1
    used = browser(alice)
    assert await sessions.holder(used) == ALICE
    renewed = await sessions.renewed(used)
    tokens.seconds += 1

    assert await sessions.holder(browser(bob)) is None
    assert await sessions.holder(browser(alice)) is None
    assert renewed is not None
    assert await sessions.holder(browser(renewed)) == ALICE
    assert await sessions.holder(page) == BOB, "a page that is still open uses it"


async def test_a_cookie_is_renewed_now_and_then_and_for_those_who_are_signed_in(
    keys: SigningKeys,
) -> None:
    tokens = Tokens()
    sessions = a_table(tokens, keys)
    alice = await sessions.sign_in("alice", address="")

    for seconds, is_due in ((0, False), (59, False), (60, True)):
        tokens.seconds = seconds
        connection = browser(alice)
        await sessions.holder(connection)
        assert (await sessions.renewed(connection) is not None) == is_due
    tokens.people = [BOB]
    for stranger in (alice, "", "x"):
        connection = browser(stranger)
        await sessions.holder(connection)
        assert await sessions.renewed(connection) is None


async def test_a_session_from_the_future_is_refused(keys: SigningKeys) -> None:
    """More than clocks of two nodes may differ."""
    tokens = Tokens()
    sessions = a_table(tokens, keys)
    alice = await sessions.sign_in("alice", address="")

    tokens.seconds -= 30
    assert await sessions.holder(browser(alice)) == ALICE
    tokens.seconds -= 1
    assert await sessions.holder(browser(alice)) is None


async def test_a_session_survives_a_restart_of_its_server(
    keys: SigningKeys, tmp_path: Path
) -> None:
    alice = await a_table(Tokens(), keys).sign_in("alice", address="")

    restarted = a_table(Tokens(), SigningKeys(tmp_path))

    assert await restarted.holder(browser(alice)) == ALICE


async def test_a_session_of_another_server_is_none_here(keys: SigningKeys, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    others = SigningKeys(tmp_path / "other")
    await others.prepare()

    alice = await a_table(Tokens(), others).sign_in("alice", address="")

    assert await a_table(Tokens(), keys).holder(browser(alice)) is None


async def test_a_token_is_no_session_and_a_session_no_token(keys: SigningKeys) -> None:
    """The same key has signed both."""
    signed = tokens_module.Tokens(keys)
    sessions = a_table(Tokens(), keys)
    alice = await sessions.sign_in("alice", address="")
    token = await signed.issue(Bearer(subject="a1", object_id="a1"), audience="x")

    with pytest.raises(BadTokenError):
        await signed.read(alice)
    assert await sessions.holder(browser(token.text)) is None


async def test_no_claim_of_a_session_can_be_altered_or_be_of_another_type(
    keys: SigningKeys,
) -> None:
    sessions = a_table(Tokens(), keys)
    alice = await sessions.sign_in("alice", address="")
    bob = await sessions.sign_in("bob", address="")
    head, _, signature = alice.split(".")
    wrong = [
        f"{head}.{bob.split('.')[1]}.{signature}",
        f"{head}.{alice.split('.')[1]}.",
        alice * 20,
    ]
    claims = {"jti": "1", "token_sha256": "a1", "signed_in_at": 1, "used_at": NOON.timestamp()}
    for name, value in (("jti", 1), ("token_sha256", None), ("used_at", "now"), ("used_at", True)):
        wrong.append(await keys.sign(claims | {name: value}, purpose=PURPOSE))

    for cookie in wrong:
        assert await sessions.holder(browser(cookie)) is None


async def test_signing_out_ends_one_session_and_no_other(keys: SigningKeys) -> None:
    sessions = a_table(Tokens(), keys)
    here = await sessions.sign_in("alice", address="")
    there = await sessions.sign_in("alice", address="")

    await sessions.sign_out(browser(here))
    await sessions.sign_out(browser("nobody's"))

    assert await sessions.holder(browser(here)) is None
    assert await sessions.holder(browser(there)) == ALICE
