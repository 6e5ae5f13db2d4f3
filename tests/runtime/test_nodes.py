"""Several nodes on one PostgreSQL, each a whole server in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from forewarned.core.ids import ResourceName
from forewarned.service.fleet.declaration import FleetPlan, VirtualMachine
from forewarned.service.sources.intake import SourceReport
from forewarned.service.sources.listing import ListedVm, Listing
from tests.builders import MINUTE, OPERATOR
from tests.metadata.fakes import post
from tests.postgresql.databases import Database
from tests.runtime.running_nodes import ADDRESSES, NAME, REPORT, WEB, Nodes, running_nodes


@pytest.fixture
async def nodes(anyio_backend: object, database: Database, tmp_path: Path) -> AsyncIterator[Nodes]:
    async with running_nodes(database, tmp_path, 3) as made:
        yield made


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  # the nodes have no reason to tell a test
            await asyncio.sleep(0.005)


async def test_a_vm_that_joins_at_one_node_is_known_at_all(nodes: Nodes) -> None:
    for node in range(3):
        assert (await nodes.request(node)).status == 200


async def test_a_change_at_one_node_is_read_at_the_next_request_to_any_other(
    nodes: Nodes,
) -> None:
    """I7: the first poll at each node waits for the news."""
    await nodes.request(0)
    before = await nodes.incarnation(0)
    await nodes.schedule(0)
    seen = [await nodes.incarnation(node) for node in (0, 1, 2)]

    assert seen == [before + 1] * 3


async def test_an_approval_at_one_node_starts_the_event_at_all(nodes: Nodes) -> None:
    await nodes.request(1)
    event_id = await nodes.schedule(0)
    approval = post(f'{{"StartRequests": [{{"EventId": "{event_id}"}}]}}')

    answer = await nodes.request(1, approval)
    document = await nodes.request(2)

    assert answer.status == 200
    assert b'"EventStatus":"Started"' in document.body


async def test_a_platform_that_two_nodes_list_at_once_is_taken_in_once(nodes: Nodes) -> None:
    """Each node runs the actuators of the settings, which are the same everywhere."""
    listed = ListedVm(
        vm_id="5b0b8a3e-0000-4000-8000-000000000001", name="shop", host="hv-a", address="127.0.0.9"
    )
    report = SourceReport(name="rack1", holder="one", every=MINUTE, listing=Listing(vms=(listed,)))
    use_cases = [each.application.use_cases for each in nodes.running]

    written = await asyncio.gather(*(each.sources.take(report, by=OPERATOR) for each in use_cases))
    again = await use_cases[2].sources.take(report, by=OPERATOR)

    assert sorted(each.added for each in written) == [(), (), ("shop",)]
    assert again.added == again.changed == again.removed == ()
    [state] = await use_cases[1].sources.show()
    assert (state.vms, state.remarks) == (1, ())


async def test_no_incarnation_falls_for_vms_that_go_from_node_to_node(
    database: Database, tmp_path: Path
) -> None:
    """I7 with balancing = "any": each poll is a new connection to another node, while events come."""
    async with running_nodes(database, tmp_path, 3, balancing="any") as nodes:
        await nodes.request(0)
        is_over = asyncio.Event()

        async def change() -> None:
            for number in range(30):
                await nodes.schedule(number % 3)
            is_over.set()

        async def wander(start: int) -> list[int]:
            seen, node = [], start
            while not is_over.is_set():
                seen.append(await nodes.incarnation(node % 3))
                node += 1
            return seen

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(change())
            wanderers = [tasks.create_task(wander(each)) for each in range(3)]

    for wanderer in wanderers:
        seen = wanderer.result()
        assert len(seen) > 3
        assert seen == sorted(seen)


async def test_a_vm_that_moves_is_found_at_its_new_address_once_that_is_answered(
    nodes: Nodes,
) -> None:
    """The Directory follows the store's news, so the answer waits for them."""
    await nodes.apply(1, web=ADDRESSES[REPORT], report=ADDRESSES[WEB])

    name = await nodes.request(1, NAME, vm=REPORT)

    assert (name.status, name.body) == (200, b"web")


async def test_events_start_on_time_by_the_first_node_that_wakes(
    nodes: Nodes, database: Database
) -> None:
    """I5, I20: the timers come from the store, whoever scheduled."""
    await nodes.request(0)
    await nodes.schedule(0)
    # Its notice is over, as far as the database knows.
    database.ask("UPDATE events SET not_before = not_before - 900 * 1000000")
    database.ask(
        "UPDATE scopes SET next_wake = (SELECT min(not_before) FROM events),"
        " changed = pg_current_xact_id() WHERE next_wake IS NOT NULL"
        " AND id IN (SELECT scope_id FROM events)"
    )

    await until(lambda: database.ask("SELECT status FROM events") == [("Started",)])
    started = "SELECT count(*) FROM history WHERE action = 'started'"
    document = await nodes.request(2)

    assert database.ask(started) == [(1,)]
    assert b'"EventStatus":"Started"' in document.body


async def test_a_node_that_loses_its_store_turns_newcomers_away_and_keeps_its_own(
    nodes: Nodes, database: Database
) -> None:
    """I14, I24, and back to normal."""
    await nodes.request(0)
    served = await nodes.incarnation(0)
    name = database.name
    other = database.url.replace(name, "postgres")
    away = Database(url=other, name="postgres")
    away.ask(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
    try:
        away.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", name)
        newcomer = await nodes.request(0, vm=REPORT)
        regular = await nodes.incarnation(0)
        approval = await nodes.request(0, post('{"StartRequests": [{"EventId": "A"}]}'))
    finally:
        away.ask(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")

    assert (newcomer.status, newcomer.headers["Retry-After"]) == (503, "1")
    assert regular == served
    assert approval.status == 503
    async with asyncio.timeout(30):
        while (await nodes.request(0, vm=REPORT)).status != 200:
            pass


async def test_after_another_server_has_taken_over_incarnations_jump_and_never_fall(
    nodes: Nodes, database: Database
) -> None:
    """I7: what VMs have read may be lost, so every number is above those before."""
    await nodes.request(0)
    await nodes.schedule(0)
    before = [await nodes.incarnation(node) for node in range(3)]
    database.ask("UPDATE store SET timeline = '00000009'")
    database.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    async with asyncio.timeout(30):
        after = before
        while min(after) < before[0] + 10_000:
            seen = [await nodes.incarnation(node) for node in range(3)]
            assert all(new >= old for new, old in zip(seen, after, strict=True))
            after = seen
    await nodes.schedule(1)
    changed = [await nodes.incarnation(node) for node in range(3)]

    assert len(set(after)) == 1
    assert database.ask("SELECT epoch FROM store") == [(2,)]
    assert changed[1] == after[1] + 1


async def test_a_fleet_of_some_thousands_is_written_in_steps(
    database: Database, tmp_path: Path
) -> None:
    """One transaction for all of it would take longer than a caller waits."""
    vms = tuple(VirtualMachine(name=ResourceName(f"vm{number}")) for number in range(1001))
    done: list[int] = []
    async with running_nodes(database, tmp_path, 1) as nodes:
        fleet = nodes.running[0].application.use_cases.fleet
        await fleet.apply(FleetPlan(vms=vms), by=OPERATOR, progress=lambda n, _: done.append(n))

    assert done == [0, 500, 1000, 1001]
