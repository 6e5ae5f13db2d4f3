"""What policies asked for before servers published is taken over from their documents, once."""

import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.ids import ScopeId
from forewarned.core.model import Policy, Publishing
from forewarned.core.rules import Rules
from forewarned.service.azure import enrollment
from forewarned.service.ports import Transaction
from forewarned.service.subscriptions.earlier_policies import take_over, take_over_policies
from forewarned.storage import SqliteStore
from forewarned.storage.backup.directory import DATABASE_FILE
from forewarned.storage.sqlite.migrate import apply, migrations
from tests.bases import own_actuator
from tests.builders import NOON, OPERATOR
from tests.end_to_end.server_process import serving
from tests.service.estate import Estate, estate

ON = Publishing(enabled=True, api_version="2020-07-01")
ASKED = Policy(approves_user_reboot=True, publishing=ON)
BEFORE_PUBLISHING = 6
"""The schema."""


@pytest.fixture
async def here(anyio_backend: object) -> AsyncIterator[Estate]:
    async with estate() as built:
        yield built


async def policies(here: Estate) -> dict[ScopeId, Policy]:
    return await here.ask(lambda s: {each: s.load(each).policy for each in s.scope_ids("")})


def forget(tx: Transaction) -> None:
    """As a version left the scopes that knew nothing of publishing."""
    for scope_id in tx.scope_ids(""):
        policy = replace(tx.load(scope_id).policy, publishing=Publishing())
        enrollment.set_policy(tx, scope_id, policy, by=OPERATOR)


async def test_vms_and_sets_that_asked_for_it_are_published(here: Estate) -> None:
    await here.put_machine("vm1", policy=ASKED)
    await here.put_machine("vm2")
    await here.put_set("web", capacity=1, policy=ASKED)
    await here.put_availability_set("db", policy=ASKED)
    await here.put_machine("vm3", availability_set="db")
    before = await policies(here)
    await here.decide(forget)

    await take_over_policies(here.use_cases.engine, by=OPERATOR)

    assert await policies(here) == before
    asked = {each for each, policy in before.items() if policy == ASKED}
    assert asked == {"avset/db", "vm/vm1", "vmss/web/0"}


async def test_what_is_off_later_stays_off(here: Estate) -> None:
    await here.put_machine("vm1", policy=ASKED)
    await take_over_policies(here.use_cases.engine, by=OPERATOR)
    await here.decide(forget)

    await take_over_policies(here.use_cases.engine, by=OPERATOR)

    assert (await policies(here))[ScopeId("vm/vm1")].publishing == Publishing()


async def test_a_database_from_before_publishing_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "forewarned.db"
    fill(path)
    clock = VirtualClock(NOON, speed=0)
    store = SqliteStore(
        path,
        clock,
        next_wake=partial(lifecycle.next_wake, rules=Rules()),
        actuator_of=own_actuator,
        wall_clock=clock.now,
    )

    async with store:
        await store.transact(partial(take_over, by=OPERATOR))
        found = await store.read(lambda s: {e: s.load(e).policy for e in s.scope_ids("vm/")})

    assert found == {
        ScopeId("vm/odd"): Policy(),
        ScopeId("vm/text"): Policy(publishing=ON),
        ScopeId("vm/web"): Policy(approves_user_reboot=True, publishing=ON),
    }


def test_a_server_takes_it_over_as_it_starts(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    fill(tmp_path / "state" / DATABASE_FILE)

    with serving(tmp_path) as server:
        shown = server.call("GET", "/v1/scopes/vm/text")

    assert shown["policy"]["event_grid_version"] == "2020-07-01"


def fill(path: Path) -> None:
    """VMs whose documents were stored as they came, without a look at this part of them."""
    declared = {
        "web": ({"enable": True, "scheduledEventsApiVersion": "2020-07-01"}, True),
        "text": ({"enable": "True", "scheduledEventsApiVersion": "2020-07-01"}, False),
        "odd": ({"enable": "perhaps"}, False),
    }
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for migration in migrations()[:BEFORE_PUBLISHING]:
            apply(connection, migration)
        for number, (name, (grid, reboots)) in enumerate(declared.items(), 1):
            targets = {"eventGridAndResourceGraph": grid}
            policy = {"scheduledEventsAdditionalPublishingTargets": targets}
            document = {"properties": {"scheduledEventsPolicy": policy}}
            vm = f"/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/{name}"
            connection.execute(
                "INSERT INTO declarations VALUES (?, ?, ?, 0, 0, 0, 0)",
                (vm.casefold(), vm, json.dumps(document)),
            )
            connection.execute(
                "INSERT INTO scopes VALUES (?, ?, 'virtual_machine', 1, 1, 0, NULL, NULL, ?, NULL, ?)",
                (
                    number,
                    f"vm/{name}",
                    json.dumps({"approves_user_reboot": reboots}),
                    f"vm/{name}",
                ),
            )
            profile = {"subscription_id": "s", "resource_group": "g", "vm_id": name}
            profile |= {"location": "here", "size": "Standard_D2s_v5", "computer_name": name}
            connection.execute(
                "INSERT INTO resources VALUES (?, ?, ?, 0, 0, 0, 'host1', 'running', 'Regular',"
                " 'Deallocate', NULL, ?, ?, '')",
                (name, name, f"vm/{name}", f"10.0.0.{number}", json.dumps(profile)),
            )
