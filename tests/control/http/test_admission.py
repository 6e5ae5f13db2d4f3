"""S12: who may ask the control API for what, where a token is required. Deny by default."""

import dataclasses
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import HTTPConnection, Request

from forewarned.control.http.admission import stranger
from forewarned.control.http.operations import Operation
from forewarned.control.v1.app import OPERATIONS, create_app
from forewarned.control.v1.changes import Changes
from forewarned.security.identities import Principal, Role
from forewarned.service.listings import HistoryFilter
from tests.control.access_setup import (
    AFAR,
    CLIENT_ID,
    PEOPLE,
    SECRET,
    AccessSetup,
    access_setup,
    token_of,
)
from tests.control.control_api import refusal

RISING = [role for role in Role if role is not Role.ACTUATOR]
READS = [each for each in OPERATIONS if each.method == "GET" and each.needs is not None]
WRITES = [each for each in OPERATIONS if each.method != "GET"]


@dataclass
class Guarded:
    """A control listener that wants a token."""

    gate: AccessSetup
    http: httpx2.AsyncClient
    signed_in: Principal | None = None
    """Who is signed in at the console, in every browser."""
    signs_out: bool = False
    """After the first request."""

    async def ask(
        self, method: str, path: str, token: str | None = None, **more: Any
    ) -> httpx2.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return await self.http.request(method, path, headers=headers, **more)

    async def actors(self) -> list[str]:
        """Of what happened, newest first."""
        rows = await self.gate.steered.services.engine.ask(
            lambda snapshot: snapshot.history(HistoryFilter(limit=10))
        )
        return [row.actor for row in rows]


@asynccontextmanager
async def guarded(folder: Path) -> AsyncIterator[Guarded]:
    async with access_setup(folder) as gate:
        made = Guarded(gate, gate.steered.http)

        async def holder(_: HTTPConnection) -> Principal | None:
            found = made.signed_in
            if made.signs_out:
                made.signed_in = None
            return found

        services = replace(
            gate.steered.services,
            access=gate.access,
            session_holder=holder,
            changes=Changes(beat=timedelta(milliseconds=10)),
        )
        transport = httpx2.ASGITransport(
            create_app(services), raise_app_exceptions=False, client=(AFAR, 40_000)
        )
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost:8170"
        ) as http:
            made.http = http
            yield made


@pytest.fixture
async def control(anyio_backend: object, tmp_path: Path) -> AsyncIterator[Guarded]:
    async with guarded(tmp_path) as made:
        yield made


def address(operation: Operation) -> tuple[str, str]:
    """One that leads to it. HEAD, so that a stream of changes ends."""
    method = "HEAD" if operation.method == "GET" else operation.method
    return method, re.sub(r"\{[^}]*\}", "nothing", operation.path)


@pytest.mark.parametrize("role", RISING)
async def test_an_operation_is_for_its_role_and_those_above(control: Guarded, role: Role) -> None:
    refused = 0
    for operation in OPERATIONS:
        method, path = address(operation)
        # Of the refusals of one caller, history has one for each while.
        control.gate.times.seconds += 3600

        answer = await control.ask(method, path, token_of(role))

        may = operation.needs is None or role.covers(operation.needs)
        assert (answer.status_code == 403) is not may, operation.name
        assert answer.status_code != 401, operation.name
        refused += not may
        if not may and method != "HEAD":
            status, error = refusal(answer)
            assert (status, error["code"], error["field"]) == (403, "role_too_low", "Authorization")
            assert f"this needs the role {operation.needs}, and '{role}' has" in error["message"]
            assert f"forewarned token create NAME --role {operation.needs}" in error["message"]
        assert len(await control.gate.refusals()) == refused, operation.name


@pytest.mark.parametrize("role", RISING)
async def test_a_template_which_may_contain_a_token_is_shown_from_maintainers_on(
    control: Guarded, role: Role
) -> None:
    """S12"""
    shape = {"kind": "template", "template": "token=abc {{ status }}"}
    target = {"kind": "webhook", "url": "https://ops.example.com/"}
    ops = {"name": "ops", "target": target, "shape": shape}
    await control.ask("POST", "/v1/subscriptions", token_of(Role.ADMIN), json=ops)

    one = await control.ask("GET", "/v1/subscriptions/ops", token_of(role))
    listed = await control.ask("GET", "/v1/subscriptions", token_of(role))

    found = [one.json(), *listed.json()["subscriptions"]]
    seen = shape["template"] if role.covers(Role.MAINTAINER) else ""
    assert [each["shape"]["template"] for each in found] == [seen, seen]
    assert [each["shape"]["template_length"] for each in found] == [len(shape["template"])] * 2


async def test_without_a_good_token_nothing_is_to_be_had_but_health(control: Guarded) -> None:
    for operation, token in itertools.product(OPERATIONS, (None, "fw_guess", "a.b.c")):
        method, path = address(operation)

        answer = await control.ask(method, path, token)

        if operation.name == "show_health" and token is None:
            assert answer.status_code == 200
            continue
        assert answer.status_code == 401, operation.name
        bare = token is None
        assert answer.headers["WWW-Authenticate"] == (
            "Bearer" if bare else 'Bearer error="invalid_token"'
        )
        if method != "HEAD":
            assert refusal(answer)[1]["code"] == ("token_missing" if bare else "token_invalid")


def test_an_operation_without_a_role_cannot_be_declared() -> None:
    [field] = (each for each in dataclasses.fields(Operation) if each.name == "needs")

    assert field.default is dataclasses.MISSING
    assert [each.name for each in OPERATIONS if each.needs is None] == ["show_health"]


async def test_where_no_role_is_needed_callers_stay_admitted() -> None:
    client = ("192.0.2.1", 4000)

    admitted = stranger(Request({"type": "http", "headers": [], "client": client}))

    assert admitted.needs is None
    assert await admitted.is_still_admitted()


def test_roles_are_those_of_the_manual() -> None:
    needed = {each.name: each.needs for each in WRITES}

    assert {name for name, role in needed.items() if role is Role.APPROVER} == {"approve_event"}
    assert {name for name, role in needed.items() if role is Role.MAINTAINER} == {
        "schedule_events",
        "cancel_event",
        "complete_event",
        "maintain_scope",
        "maintain_host",
        "fail_host",
        "predict_failure",
        *("drain_host", "undrain_host"),
        *("retry_task", "skip_task"),
        *("test_subscription", "pause_subscription", "resume_subscription", "redeliver"),
    }
    assert {name for name, role in needed.items() if role is Role.ACTUATOR} == {
        *("claim_tasks", "renew_task", "begin_task", "finish_task", "fail_task"),
        *("answer_survey", "answer_listing", "report_listing"),
    }
    assert Role.READER not in needed.values()
    others = {each.name: each.needs for each in READS if each.needs is not Role.READER}
    assert others == {"list_questions": Role.ACTUATOR, "begin_listing": Role.ACTUATOR}


async def test_an_actuators_token_is_for_its_operations_alone(control: Guarded) -> None:
    """S12: who gets hold of one can't even read."""
    admitted = set()
    for operation in OPERATIONS:
        method, path = address(operation)
        answer = await control.ask(method, path, token_of(Role.ACTUATOR))
        if answer.status_code != 403:
            admitted.add(operation.needs)

    assert admitted == {None, Role.ACTUATOR}


def test_an_actuator_does_what_actuators_do_and_only_administrators_may_too() -> None:
    assert [role for role in Role if Role.ACTUATOR.covers(role)] == [Role.ACTUATOR]
    assert [role for role in Role if role.covers(Role.ACTUATOR)] == [Role.ADMIN, Role.ACTUATOR]


async def test_an_expired_token_is_refused_as_such(control: Guarded) -> None:
    """S12: a holder must learn that they need a new one."""
    control.gate.roster.people = [
        replace(each, expires_at=control.gate.times.now) for each in PEOPLE
    ]

    status, error = refusal(await control.ask("GET", "/v1/clock", token_of(Role.READER)))

    assert (status, error["code"]) == (401, "token_expired")
    assert "expired at" in error["message"]


async def test_who_may_not_is_not_told_what_is_wrong_with_the_rest(control: Guarded) -> None:
    answer = await control.ask("POST", "/v1/events", content=b"no JSON")

    assert refusal(answer)[0] == 401


async def test_health_tells_strangers_no_more_than_that(control: Guarded) -> None:
    stranger = await control.ask("GET", "/v1/health")
    reader = await control.ask("GET", "/v1/health", token_of(Role.READER))
    control.gate.steered.store.is_down = True
    down = await control.ask("GET", "/v1/health")

    assert stranger.json() == {"status": "ok"}
    assert {"status", "mode", "version", "metadata", "clock", "store"} == set(reader.json())
    assert (down.status_code, down.json()) == (503, {"status": "store_unavailable"})


async def test_history_names_the_principal_whatever_the_label_says(control: Guarded) -> None:
    answer = await control.http.post(
        "/v1/hosts/rack1/fail",
        headers={
            "Authorization": f"Bearer {token_of(Role.MAINTAINER)}",
            "Forewarned-Actor": "somebody else",
        },
    )

    assert answer.status_code == 201
    assert set(await control.actors()) <= {"maintainer", "control"}
    assert (await control.actors())[0] == "maintainer"


async def test_a_revoked_token_is_refused_at_once(control: Guarded) -> None:
    before = await control.ask("GET", "/v1/clock", token_of(Role.READER))
    control.gate.roster.people = ()
    after = await control.ask("GET", "/v1/clock", token_of(Role.READER))

    assert before.status_code == 200
    assert refusal(after)[1]["code"] == "token_invalid"


async def test_a_service_principal_is_admitted_by_the_token_it_signed_in_for(
    control: Guarded,
) -> None:
    token = await control.gate.access.sign_in(
        CLIENT_ID, SECRET, audience="https://management.azure.com", address=AFAR
    )

    assert (await control.ask("POST", "/v1/hosts/rack1/fail", token.text)).status_code == 201
    assert (await control.actors())[0] == "ci"


async def test_a_vm_approves_events_of_its_own_scope_and_of_no_other(control: Guarded) -> None:
    """As at the ARM listener: what is another scope's does not exist for it."""
    await control.gate.steered.switch_on("db-0", "web")
    own = await control.gate.steered.schedule("Reboot", "db-1")
    other = await control.gate.steered.schedule("Reboot", "web")
    token = await control.gate.vm_token("db-0")

    approved = await control.ask("POST", f"/v1/events/{own['event_id']}/approve", token)
    refused = await control.ask("POST", f"/v1/events/{other['event_id']}/approve", token)

    assert approved.json()["status"] == "Started"
    assert refusal(refused)[1]["code"] == "unknown_event"
    assert (await control.gate.steered.get(f"/v1/events/{other['event_id']}"))[
        "status"
    ] == "Scheduled"
    assert "vm:db-0" in await control.actors()


# --- being signed in at the console --------------------------------------------------------------


async def test_a_session_reads_what_pages_ask_for_and_changes_nothing(control: Guarded) -> None:
    """S13: a page of another site can send a browser's cookies along with a request."""
    [control.signed_in] = (each for each in PEOPLE if each.role is Role.ADMIN)
    for operation in OPERATIONS:
        method, path = address(operation)

        answer = await control.ask(method, path)

        is_open = operation.takes_session or operation.needs is None
        assert (answer.status_code == 200) is is_open, operation.name
        assert (answer.status_code == 401) is not is_open, operation.name


def test_only_reads_take_a_session() -> None:
    """S13."""
    taking = {each.name: each.method for each in OPERATIONS if each.takes_session}

    assert taking == dict.fromkeys(
        ("describe_api", "show_metrics", "watch_changes", "show_clock"), "GET"
    )


async def test_a_token_counts_for_more_than_a_session(control: Guarded) -> None:
    [control.signed_in] = (each for each in PEOPLE if each.role is Role.ADMIN)

    answer = await control.ask("GET", "/v1/clock", "fw_guess")

    assert answer.status_code == 401


async def test_a_stream_ends_when_the_token_is_revoked(control: Guarded) -> None:
    """S12: within a beat, and before anything more is told."""
    control.gate.roster.revokes = True

    answer = await control.ask("GET", "/v1/changes", token_of(Role.READER))

    assert [*names(answer)] == ["hello", "signed_out"]


async def test_a_wait_tells_nothing_to_a_token_that_was_revoked_meanwhile(control: Guarded) -> None:
    """S12."""
    event = await control.gate.steered.schedule("Reboot", "web")
    control.gate.roster.revokes = True

    path = f"/v1/events/{event['event_id']}?wait=approved"
    answer = await control.ask("GET", path, token_of(Role.READER))

    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_invalid")


async def test_a_stream_ends_with_the_session(control: Guarded) -> None:
    """S13."""
    [control.signed_in] = (each for each in PEOPLE if each.role is Role.READER)
    control.signs_out = True

    answer = await control.ask("GET", "/v1/changes")

    assert [*names(answer)] == ["hello", "signed_out"]


def names(answer: httpx2.Response) -> list[str]:
    """Of the messages of a stream that has ended."""
    return re.findall(r"^event: (\w+)$", answer.text, re.MULTILINE)
