"""A checkpoint by a real PostgreSQL, and a switchover by Patroni's documented REST API."""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from forewarned.agent.hooks.ports import Hook
from forewarned.agent.model import Phase, Verdict
from tests.agent.hooks.calls import Told, a_call, a_hook, undone
from tests.agent.hooks.http_service import Asked, Reply, Service, answering
from tests.packages import give_up, need
from tests.postgresql.servers import NoServerError, PostgresServer, private_folder, programs


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """One of its own: others have no reason to wait for its checkpoints."""
    need("psql")
    try:
        programs()
    except NoServerError as error:
        give_up(str(error))
    with private_folder() as folder, PostgresServer(folder) as server:
        yield server


def last_checkpoint(server: PostgresServer) -> str:
    [(position,)] = server.ask("SELECT checkpoint_lsn::text FROM pg_control_checkpoint()")
    return str(position)


async def test_a_checkpoint_is_written(postgres: PostgresServer) -> None:
    hook = a_hook("postgresql", connection=postgres.connection)
    postgres.ask("CREATE TABLE numbers AS SELECT generate_series(1, 1000)")
    before = last_checkpoint(postgres)

    outcome = await hook.run(a_call())

    assert (outcome.verdict, outcome.detail) == (Verdict.DONE, "wrote a checkpoint")
    assert last_checkpoint(postgres) != before
    assert await hook.check() == []


async def test_what_postgresql_refuses_is_a_failure_in_its_words(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    postgres.ask("CREATE ROLE guest LOGIN")
    powerless = a_hook(
        "postgresql", connection=postgres.connection.replace("user=postgres", "user=guest")
    )
    absent = a_hook("postgresql", connection=f"host={tmp_path} user=postgres")
    missing = a_hook("postgresql", psql=["no-psql"])

    refused = await powerless.run(a_call())
    unreached = await absent.run(a_call())

    assert refused.verdict is Verdict.FAILED
    assert "CHECKPOINT" in refused.detail
    assert unreached.verdict is Verdict.FAILED
    assert (await absent.check())[0].startswith("psql ended with exit code 2")
    assert await missing.check() == ["there is no executable program 'no-psql'"]


# --- Patroni -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Patroni:
    """One node's REST API, in the shapes of Patroni's own documentation."""

    leader: str | None = "pg1"
    members: tuple[str, ...] = ("pg1", "pg2", "pg3")
    refusal: tuple[int, str] | None = None
    password: str | None = None
    says_its_name: bool = True
    looks_until_settled: int = 2
    switched: list[Any] = field(default_factory=list)

    def answer(self, asked: Asked) -> Reply:
        match asked.method, asked.path:
            case "GET", "/patroni":
                itself = {"version": "4.0.0", "scope": "demo"}
                if self.says_its_name:
                    itself["name"] = "pg1"
                return Reply(
                    # It answers 503 as a replica, with the same body.
                    status=200 if self.leader == "pg1" else 503,
                    json={"state": "running", "role": "primary", "patroni": itself},
                )
            case "GET", "/cluster":
                return Reply(json={"members": self._shown(), "scope": "demo"})
            case "POST", "/switchover":
                return self._switch(asked)
            case _:
                return Reply(status=404)

    def _shown(self) -> list[dict[str, Any]]:
        settling = bool(self.switched) and self.looks_until_settled > 0
        self.looks_until_settled -= settling
        state = "starting" if settling else "running"
        return [
            {
                "name": name,
                "role": "leader" if name == self.leader else "replica",
                "state": state if name == self.leader else "streaming",
                "api_url": f"http://{name}:8008/patroni",
                "host": name,
                "port": 5432,
                "timeline": 5,
            }
            for name in self.members
        ]

    def _switch(self, asked: Asked) -> Reply:
        if self.password is not None:
            wanted = b64encode(f"patroni:{self.password}".encode()).decode()
            if asked.headers.get("authorization") != f"Basic {wanted}":
                return Reply(status=401, text="no auth header received")
        if self.refusal is not None:
            return Reply(status=self.refusal[0], text=self.refusal[1])
        if asked.json["leader"] != self.leader:
            return Reply(status=412, text="leader name does not match")
        self.switched.append(asked.json)
        self.leader = asked.json.get("candidate", "pg2")
        return Reply(text=f'Successfully switched over to "{self.leader}"')


@pytest.fixture
def patroni() -> Patroni:
    return Patroni()


@pytest.fixture
def service(patroni: Patroni) -> Iterator[Service]:
    with answering(patroni.answer) as serving:
        yield serving


# Any: fields of the hook's table.
def switchover(service: Service, **table: Any) -> Hook:
    return a_hook("postgresql", action="switchover", patroni=service.url, **table)


async def test_the_leader_hands_over_and_waits_for_the_new_one(
    patroni: Patroni, service: Service
) -> None:
    told = Told()
    hook = switchover(service)

    outcome = await hook.run(a_call(told=told))
    back = await undone(hook, outcome)

    assert (outcome.verdict, outcome.detail) == (Verdict.DONE, "pg2 is the leader now")
    assert patroni.switched == [{"leader": "pg1"}]
    assert told.waits_for == [
        "Patroni to switch over",
        "a new leader",
        "a new leader",
    ]
    assert back.detail == "a hook of this kind is never undone"
    assert patroni.leader == "pg2"


async def test_a_replica_has_nothing_to_hand_over(patroni: Patroni, service: Service) -> None:
    patroni.leader = "pg3"

    outcome = await switchover(service).run(a_call())

    assert (outcome.verdict, outcome.detail) == (
        Verdict.DONE,
        "pg1 is not the leader: pg3 is",
    )
    assert patroni.switched == []


async def test_the_file_can_name_the_next_leader(patroni: Patroni, service: Service) -> None:
    outcome = await switchover(service, candidate="pg3").run(a_call())

    assert outcome.detail == "pg3 is the leader now"
    assert patroni.switched == [{"leader": "pg1", "candidate": "pg3"}]


async def test_what_patroni_refuses_is_a_failure_in_its_words(
    patroni: Patroni, service: Service
) -> None:
    patroni.refusal = 412, "no good candidates have been found"

    outcome = await switchover(service).run(a_call())

    assert (outcome.verdict, outcome.detail) == (
        Verdict.FAILED,
        "Patroni answered 412: no good candidates have been found",
    )


async def test_a_cluster_without_a_leader_is_a_failure(patroni: Patroni, service: Service) -> None:
    """The next one may be this very node."""
    patroni.leader = None

    outcome = await switchover(service).run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail == "Patroni's cluster has no leader at the moment"


async def test_an_old_patroni_needs_to_be_told_the_nodes_name(
    patroni: Patroni, service: Service
) -> None:
    patroni.says_its_name = False

    nameless = await switchover(service).run(a_call())
    named = await switchover(service, member="pg1").run(a_call())

    assert nameless.verdict is Verdict.FAILED
    assert "set member" in nameless.detail
    assert named.detail == "pg2 is the leader now"


async def test_a_password_is_read_from_its_file(
    patroni: Patroni, service: Service, tmp_path: Path
) -> None:
    patroni.password = "secret"
    path = a_file(tmp_path, "secret\n")

    stranger = await switchover(service).run(a_call())
    known = await switchover(service, user="patroni", password_file=path).run(a_call())

    assert stranger.detail == "Patroni answered 401: no auth header received"
    assert known.verdict is Verdict.DONE


def a_file(folder: Path, text: str) -> str:
    path = folder / "password"
    path.write_text(text)
    return str(path)


async def test_check_finds_what_would_go_wrong(patroni: Patroni, service: Service) -> None:
    fine = await switchover(service).check()
    unknown = await switchover(service, candidate="pg9").check()
    patroni.members = ("pg2",)
    alone = await switchover(service).check()

    assert fine == []
    assert unknown == ["Patroni's cluster has no member pg9"]
    assert alone == [
        "Patroni's cluster has no member pg1",
        "Patroni's cluster has no other member to switch to",
    ]


@pytest.mark.parametrize(
    "reply",
    [Reply(text="<html>"), Reply(json=[]), Reply(json={"members": "all"}), Reply(status=404)],
)
async def test_an_answer_that_is_not_patronis_is_a_failure(reply: Reply) -> None:
    """S16."""
    with answering(lambda _: reply) as service:
        outcome = await switchover(service, member="pg1").run(a_call())

    assert outcome.verdict is Verdict.FAILED


def test_it_says_what_it_would_do() -> None:
    hook = a_hook("postgresql", action="switchover", candidate="pg3")

    assert (
        hook.describe(Phase.PREPARE)
        == "switch over to pg3 through Patroni, if this node is the leader"
    )
