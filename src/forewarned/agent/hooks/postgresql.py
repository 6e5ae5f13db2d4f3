"""Makes PostgreSQL ready to go down: a checkpoint, or a switchover that Patroni carries out.

Invariant: a switchover names this node as the leader, so that Patroni refuses it if another node
has become the leader in the meantime.
"""

import asyncio
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta
from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.table import HookTable
from forewarned.agent.model import Phase
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Answer, Request, secret, send
from forewarned.targets.programs import missing, run_program
from forewarned.targets.urls import check_url

_LEADERS: Final = frozenset({"leader", "standby_leader"})
_LOOK: Final = 0.5
"""Seconds between two looks at the cluster."""


class PostgresqlAction(StrEnum):
    CHECKPOINT = "checkpoint"
    SWITCHOVER = "switchover"


class PostgresqlHook(HookTable, frozen=True, kw_only=True):
    """Writes a checkpoint with `psql`, or hands leadership over through Patroni's REST API."""

    action: PostgresqlAction = PostgresqlAction.CHECKPOINT
    """`checkpoint`; or `switchover`, if this node is its cluster's leader."""
    psql: Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)] = ("psql",)
    """How to run `psql`, for example `["runuser", "-u", "postgres", "--", "psql"]`."""
    connection: str = "dbname=postgres"
    """What `psql` connects to; for a password, name a file with `passfile`."""
    patroni: str = "http://127.0.0.1:8008"
    """The URL of this node's Patroni."""
    member: str | None = None
    """This node's name in the cluster; if not given, its Patroni is asked."""
    candidate: str | None = None
    """The member to become the leader; if not given, Patroni chooses one."""
    user: str | None = None
    """The user for Patroni's API, if it needs one."""
    password_file: str | None = None
    """A file with that user's password."""
    ca_file: str | None = None
    """A file with the certificate of the authority that signed Patroni's, if the system does not
    trust it.
    """

    def __post_init__(self) -> None:
        check_url(self.patroni)
        if (self.user is None) != (self.password_file is None):
            raise ValueError("give user and password_file together, or neither")

    @override
    async def run(self, call: Call) -> str:
        if self.action is PostgresqlAction.SWITCHOVER:
            return await _Patroni(self).switch_over(call)
        call.waiting_for("the checkpoint to be written")
        await self._psql("CHECKPOINT")
        return "wrote a checkpoint"

    @override
    async def check(self) -> list[str]:
        if self.action is PostgresqlAction.SWITCHOVER:
            return await _Patroni(self).check()
        problems = missing(self.psql[0])
        if not problems:
            await self._psql("SELECT 1")
        return problems

    @override
    def describe(self, phase: Phase) -> str:
        if self.action is PostgresqlAction.CHECKPOINT:
            return "write a checkpoint of PostgreSQL"
        to = f" to {self.candidate}" if self.candidate else ""
        return f"switch over{to} through Patroni, if this node is the leader"

    async def _psql(self, statement: str) -> None:
        ran = await run_program(
            (
                *self.psql,
                "--no-psqlrc",
                "--no-password",
                "--quiet",
                "--set=ON_ERROR_STOP=1",
                f"--dbname={self.connection}",
                f"--command={statement}",
            )
        )
        if ran.exit_code != 0:
            raise TargetError(f"psql {ran.last_words}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leader:
    name: str
    is_up: bool


@dataclass(frozen=True, slots=True)
class _Patroni:
    settings: PostgresqlHook

    async def switch_over(self, call: Call) -> str:
        me = await self._me()
        leader = await self._leader()
        if leader is None:
            raise TargetError("Patroni's cluster has no leader at the moment")
        if leader.name != me:
            return f"{me} is not the leader: {leader.name} is"
        call.waiting_for("Patroni to switch over")
        await self._switch(me)
        while (leader := await self._leader()) is None or leader.name == me or not leader.is_up:
            call.waiting_for("a new leader")
            await asyncio.sleep(_LOOK)
        return f"{leader.name} is the leader now"

    async def check(self) -> list[str]:
        members = await self._members()
        me = await self._me()
        names = [member.get("name") for member in members]
        problems = [] if me in names else [f"Patroni's cluster has no member {me}"]
        if len(members) < 2:
            problems.append("Patroni's cluster has no other member to switch to")
        if self.settings.candidate is not None and self.settings.candidate not in names:
            problems.append(f"Patroni's cluster has no member {self.settings.candidate}")
        return problems

    async def _switch(self, me: str) -> None:
        told = {"leader": me}
        if self.settings.candidate is not None:
            told["candidate"] = self.settings.candidate
        auth = None
        if self.settings.user is not None and self.settings.password_file is not None:
            auth = (self.settings.user, secret(self.settings.password_file))
        answer = await self._ask(
            Request(
                method="POST",
                url=self._url("/switchover"),
                headers={"Content-Type": "application/json"},
                body=json.dumps(told).encode(),
                auth=auth,
            )
        )
        if answer.status != 200:
            raise TargetError(f"Patroni answered {answer.status}: {answer.excerpt()}")

    async def _me(self) -> str:
        """As Patroni calls this node, which need not be how the cloud calls the VM."""
        if self.settings.member is not None:
            return self.settings.member
        answer = await self._ask(Request(method="GET", url=self._url("/patroni")))
        match _table(answer).get("patroni"):
            case {"name": str(name)}:
                return name
            case _:
                # Versions before 3 don't.
                raise TargetError("Patroni does not give this node's name: set member")

    async def _leader(self) -> _Leader | None:
        for member in await self._members():
            if member.get("role") in _LEADERS:
                is_up = member.get("state") in {"running", "streaming"}
                return _Leader(name=str(member.get("name")), is_up=is_up)
        return None

    async def _members(self) -> list[dict[str, Any]]:
        answer = await self._ask(Request(method="GET", url=self._url("/cluster")))
        members = _table(answer).get("members")
        if not isinstance(members, list) or not all(isinstance(one, dict) for one in members):
            raise TargetError("Patroni's answer does not list the cluster's members")
        return members

    async def _ask(self, request: Request) -> Answer:
        return await send(request, ca_file=self.settings.ca_file)

    def _url(self, path: str) -> str:
        return self.settings.patroni.rstrip("/") + path


# Any: what JSON is made of; callers check what they take from it.
def _table(answer: Answer) -> dict[str, Any]:
    # A node that is a replica, or is just starting, says so by 503, with the same body.
    if answer.status not in {200, 503}:
        raise TargetError(f"Patroni answered {answer.status}: {answer.excerpt()}")
    said = answer.json()
    if not isinstance(said, dict):
        raise TargetError("Patroni's response can't be read")
    return said
