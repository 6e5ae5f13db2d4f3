"""S13: who is signed in at the console, and for how long."""

from dataclasses import dataclass, field
from itertools import count

import pytest
from starlette.requests import HTTPConnection

from forewarned.console.sessions import COOKIE, LONGEST_IDLE, MOST, Sessions
from forewarned.security.identities import InvalidTokenError, Principal, Role, RoleTooLowError

ALICE = Principal(name="alice", role=Role.APPROVER, token_sha256="a1")
BOB = Principal(name="bob", role=Role.READER, token_sha256="b2")


@dataclass
class Tokens:
    """Alice's token is `alice`, and so on."""

    people: list[Principal] = field(default_factory=lambda: [ALICE, BOB])
    seconds: float = 1e6

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


def a_table(tokens: Tokens) -> Sessions:
    ids = map(str, count(1))
    return Sessions(tokens, new_id=lambda: next(ids), monotonic=lambda: tokens.seconds)


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


async def test_whoever_signs_in_is_known_by_the_cookie_and_by_no_other() -> None:
    sessions = a_table(Tokens())

    alice = await sessions.sign_in("alice", address="")
    bob = await sessions.sign_in("bob", address="")

    assert alice != bob
    assert sessions.holder(browser(alice)) == ALICE
    assert sessions.holder(browser(bob)) == BOB
    for stranger in ("", "3", alice + bob):
        assert sessions.holder(browser(stranger)) is None
    assert sessions.holder(browser(alice, name="other")) is None


async def test_over_tls_the_cookie_has_a_name_that_no_neighbour_can_set() -> None:
    sessions = a_table(Tokens())
    alice = await sessions.sign_in("alice", address="")

    assert sessions.holder(browser(alice, scheme="https")) is None
    assert sessions.holder(browser(alice, scheme="https", name=f"__Host-{COOKIE}")) == ALICE


async def test_a_wrong_token_opens_nothing() -> None:
    sessions = a_table(Tokens())

    with pytest.raises(InvalidTokenError):
        await sessions.sign_in("eve", address="")

    assert len(sessions) == 0


async def test_a_revoked_token_ends_its_sessions_at_once_and_for_good() -> None:
    """As does a new token for the same name."""
    tokens = Tokens()
    sessions = a_table(tokens)
    alice = await sessions.sign_in("alice", address="")

    tokens.people = [Principal(name="alice", role=Role.ADMIN, token_sha256="new"), BOB]
    assert sessions.holder(browser(alice)) is None
    tokens.people = [ALICE]

    assert sessions.holder(browser(alice)) is None


async def test_another_role_is_the_sessions_at_once() -> None:
    tokens = Tokens()
    sessions = a_table(tokens)
    alice = await sessions.sign_in("alice", address="")

    tokens.people = [Principal(name="alice", role=Role.READER, token_sha256="a1")]

    found = sessions.holder(browser(alice))
    assert found is not None
    assert found.role is Role.READER


async def test_a_session_ends_when_it_was_idle_for_too_long() -> None:
    tokens = Tokens()
    sessions = a_table(tokens)
    alice = await sessions.sign_in("alice", address="")
    bob = await sessions.sign_in("bob", address="")

    tokens.seconds += LONGEST_IDLE.total_seconds() - 1
    assert sessions.holder(browser(alice)) == ALICE
    tokens.seconds += 1

    assert sessions.holder(browser(bob)) is None
    assert sessions.holder(browser(alice)) == ALICE
    assert len(sessions) == 1


async def test_there_are_so_many_and_the_longest_unused_goes_first() -> None:
    sessions = a_table(Tokens())
    alice = await sessions.sign_in("alice", address="")
    bob = await sessions.sign_in("bob", address="")
    sessions.holder(browser(alice))

    for _ in range(MOST - 1):
        await sessions.sign_in("bob", address="")

    assert len(sessions) == MOST
    assert sessions.holder(browser(bob)) is None
    assert sessions.holder(browser(alice)) == ALICE


async def test_signing_out_ends_one_session_and_no_other() -> None:
    sessions = a_table(Tokens())
    here = await sessions.sign_in("alice", address="")
    there = await sessions.sign_in("alice", address="")

    sessions.sign_out(browser(here))
    sessions.sign_out(browser("nobody's"))

    assert sessions.holder(browser(here)) is None
    assert sessions.holder(browser(there)) == ALICE
