"""How far operations are, as clients ask while they wait."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from forewarned.service.azure import operations
from forewarned.service.ports import Transaction
from tests.builders import MINUTE, NOON, OPERATOR
from tests.control.arm.asking import ROOT, SUBSCRIPTION, VERSION
from tests.control.arm.declared_machines import PLAIN, WEB
from tests.control.arm.emulator import GROUP, Emulator, emulator

OTHER = f"{SUBSCRIPTION[:-1]}1"
DEPLOYMENT = f"{GROUP}/providers/Microsoft.Resources/deployments/d1"


@pytest.fixture
async def cloud(anyio_backend: object) -> AsyncIterator[Emulator]:
    """With a VM whose scope is active."""
    async with emulator() as running:
        await running.good("PUT", WEB, PLAIN)
        await running.read("web")
        yield running


def operation_id(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


async def test_an_answer_that_is_not_final_says_where_to_look(cloud: Emulator) -> None:
    response = await cloud.ask("POST", f"{WEB}/restart")

    assert (response.status_code, response.content) == (202, b"")
    url = response.headers["Azure-AsyncOperation"]
    assert url.startswith(
        f"{ROOT}/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/local"
        "/operations/"
    )
    assert response.headers["Location"] == f"{url}&monitor=true"
    # Anything but a whole number of at least 1 makes clients wait long, or fail.
    assert response.headers["Retry-After"] == "1"


async def test_the_document_tells_when_it_began_and_ended(cloud: Emulator) -> None:
    url = await cloud.begin("POST", f"{WEB}/restart")

    running = await cloud.ask("GET", url)

    assert running.status_code == 200
    assert running.headers["Retry-After"] == "1"
    assert running.json() == {
        "startTime": NOON.isoformat(),
        "status": "InProgress",
        "name": operation_id(url),
    }
    await cloud.step(30 * MINUTE)
    over = await cloud.ask("GET", url)
    assert over.json() == running.json() | {
        "status": "Succeeded",
        "endTime": (NOON + 25 * MINUTE).isoformat(),
    }
    assert "Retry-After" not in over.headers


async def test_the_location_is_accepted_until_it_is_over(cloud: Emulator) -> None:
    url = f"{await cloud.begin('POST', f'{WEB}/restart')}&monitor=true"

    running = await cloud.ask("GET", url)

    assert running.status_code == 202
    assert running.headers["Location"] == f"{ROOT}{url}"
    assert running.headers["Retry-After"] == "1"
    await cloud.step(30 * MINUTE)
    over = await cloud.ask("GET", url)
    assert (over.status_code, over.content) == (200, b"")


async def test_a_canceled_operation_says_why(cloud: Emulator) -> None:
    url = await cloud.begin("POST", f"{WEB}/restart")
    [event] = await cloud.read("web")

    await cloud.use_cases.scheduler.cancel(event.id, reason="not today", by=OPERATOR)

    shown = await cloud.good("GET", url)
    assert shown["status"] == "Canceled"
    assert shown["error"] == {"code": "OperationCanceled", "message": "not today"}
    assert shown["endTime"] == NOON.isoformat()
    refused = await cloud.refused("GET", f"{url}&monitor=true")
    assert refused == (409, "OperationCanceled", "not today")


async def test_a_failed_operation_shows_its_error(cloud: Emulator) -> None:
    def fail(tx: Transaction) -> str:
        record = operations.open_(
            tx, DEPLOYMENT, "deploy", (), context=cloud.services.context(OPERATOR, "one")
        )
        failed = replace(record, id="failed", failure_code="Conflict", failure="it is taken")
        tx.open_operation(failed)
        return failed.id

    name = await cloud.use_cases.engine.decide(fail)

    shown = await cloud.good("GET", f"{DEPLOYMENT}/operationStatuses/{name}")
    assert shown["status"] == "Failed"
    assert shown["error"] == {"code": "Conflict", "message": "it is taken"}


async def test_an_operation_of_a_deployment_is_shown_there(cloud: Emulator) -> None:
    def deploy(tx: Transaction) -> str:
        return operations.open_(
            tx, DEPLOYMENT, "deploy", (), context=cloud.services.context(OPERATOR, "one")
        ).id

    name = await cloud.use_cases.engine.decide(deploy)

    shown = await cloud.good("GET", f"{DEPLOYMENT}/operationStatuses/{name}")
    assert shown["status"] == "Succeeded"
    elsewhere = DEPLOYMENT.replace("/rg1/", "/rg/")
    assert (await cloud.refused("GET", f"{elsewhere}/operationStatuses/{name}"))[0] == 404


async def test_an_operation_is_none_of_another_subscription(cloud: Emulator) -> None:
    url = await cloud.begin("POST", f"{WEB}/restart")

    unknown = await cloud.refused("GET", url.replace(operation_id(url), "no-such-operation"))
    foreign = await cloud.refused("GET", url.replace(SUBSCRIPTION, OTHER, 1))

    assert unknown[:2] == (404, "NotFound")
    assert foreign[:2] == (404, "SubscriptionNotFound")


async def test_a_restart_of_the_server_is_not_the_end_of_an_operation(
    tmp_path_factory: pytest.TempPathFactory, anyio_backend: object
) -> None:
    """I23."""
    async with emulator(tmp_path_factory.mktemp("operations") / "forewarned.db") as cloud:
        await cloud.good("PUT", WEB, PLAIN)
        await cloud.read("web")
        url = await cloud.begin("POST", f"{WEB}/restart?api-version={VERSION}")
        await cloud.step(16 * MINUTE)

        await cloud.restart()

        assert await cloud.status(url) == "InProgress"
        await cloud.step(10 * MINUTE)
        assert await cloud.status(url) == "Succeeded"
