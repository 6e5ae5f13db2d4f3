"""A lost race is run again: every operation of ARM gives the same answer, and leaves the same."""

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from forewarned.control.arm.app import OPERATIONS
from forewarned.control.arm.routes import Operation, Router
from forewarned.service.ports import Store
from tests.builders import DAY, MINUTE
from tests.control.arm.declared_machines import NOTICED, PLAIN, SPOT, VMS
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator, emulator
from tests.control.arm.sets import WEB, a_set, terminate
from tests.control.arm.test_maintenance import acknowledging, listing
from tests.racing import callers_in, contents, outcome_of_lost_races

NET: Final = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/net"
SUBNET: Final = {"properties": {"addressPrefix": "10.0.0.0/24"}}
DEPLOYMENT: Final = f"{GROUP}/providers/Microsoft.Resources/deployments/d"
AVAILABILITY_SET: Final = f"{COMPUTE}/availabilitySets/db"
TEMPLATE: Final[dict[str, Any]] = {
    "properties": {
        "mode": "Incremental",
        "template": {
            "resources": [
                {
                    "type": "Microsoft.Compute/virtualMachineScaleSets",
                    "apiVersion": "2026-04-01",
                    "name": "made",
                    **a_set(2),
                },
                {
                    "type": "Microsoft.Compute/virtualMachines",
                    "apiVersion": "2026-04-01",
                    "name": "alone",
                    **NOTICED,
                },
            ]
        },
    }
}
BROKEN: Final[dict[str, Any]] = {
    "properties": {
        "mode": "Incremental",
        "template": {
            "resources": [
                {
                    "type": "Microsoft.Compute/virtualMachines",
                    "apiVersion": "2026-04-01",
                    "name": "spot",
                    "location": "local",
                    "properties": {"priority": "None such"},
                }
            ]
        },
    }
}


class Caller:
    """Asks, and keeps which operations have been carried out."""

    def __init__(self, arm: Emulator) -> None:
        self._arm = arm
        self._router = Router(OPERATIONS)
        self.operations: list[Operation] = []

    async def __call__(self, method: str, path: str, body: object = None) -> object:
        operation, _ = self._router.find(method, tuple(path.strip("/").split("/")))
        response = await self._arm.ask(method, path, body)
        assert response.is_success, f"{method} {path}: {response.text}"
        self.operations.append(operation)
        progress = response.headers.get("Azure-AsyncOperation", "")
        return response.status_code, progress, response.json() if response.content else None


async def every_kind_of_operation(arm: Emulator, call: Caller) -> AsyncIterator[object]:
    """One after the other, each with its answer."""
    yield await call("PUT", GROUP, {"location": "local"})
    yield await call("PATCH", GROUP, {"tags": {"a": "b"}})
    async for answer in operations_on_what_is_declared(call):
        yield answer
    async for answer in operations_on_sets(arm, call):
        yield answer
    async for answer in operations_on_machines(arm, call):
        yield answer
    for name, template in (("d", TEMPLATE), ("d", TEMPLATE), ("e", BROKEN)):
        yield await call("PUT", f"{DEPLOYMENT[:-1]}{name}", template)
    failed = await arm.good("GET", f"{DEPLOYMENT[:-1]}e")
    assert failed["properties"]["provisioningState"] == "Failed"
    for word in ("validate", "whatIf"):
        yield await call("POST", f"{DEPLOYMENT}/{word}", TEMPLATE)
    yield await call("DELETE", DEPLOYMENT)
    yield await call("DELETE", GROUP)
    await arm.step(DAY)


async def operations_on_what_is_declared(call: Caller) -> AsyncIterator[object]:
    yield await call("PUT", NET, {"location": "local", "properties": {}})
    yield await call("PATCH", NET, {"tags": {"a": "b"}})
    yield await call("PUT", f"{NET}/subnets/one", SUBNET)
    yield await call("DELETE", f"{NET}/subnets/one")
    yield await call("DELETE", NET)


async def operations_on_sets(arm: Emulator, call: Caller) -> AsyncIterator[object]:
    for capacity in (2, 5, 4):
        yield await call("PUT", WEB, a_set(capacity))
    await arm.read("web_0")
    yield await call("PATCH", WEB, terminate(notBeforeTimeout="PT10M"))
    yield await call("POST", f"{WEB}/manualupgrade", {"instanceIds": ["0"]})
    yield await call("POST", f"{WEB}/restart", {"instanceIds": ["0", "1"]})
    yield await call("POST", f"{WEB}/delete", {"instanceIds": ["1"]})
    one = f"{WEB}/virtualMachines/2"
    shown: Any = await arm.good("GET", one)
    shown["properties"]["protectionPolicy"] = {"protectFromScaleIn": True}
    yield await call("PUT", one, shown)
    yield await call("POST", f"{one}/redeploy")
    yield await call("DELETE", f"{WEB}/virtualMachines/0")
    await arm.step(30 * MINUTE)
    spot = f"{COMPUTE}/virtualMachineScaleSets/spot"
    body = a_set(2)
    body["properties"]["virtualMachineProfile"] = {"priority": "Spot"}
    yield await call("PUT", spot, body)
    yield await call("POST", f"{spot}/virtualMachines/0/simulateEviction")
    yield await call("DELETE", WEB)
    await arm.step(30 * MINUTE)


async def operations_on_machines(arm: Emulator, call: Caller) -> AsyncIterator[object]:
    yield await call("PUT", AVAILABILITY_SET, {"location": "local"})
    yield await call("PATCH", AVAILABILITY_SET, {"tags": {"a": "b"}})
    member = {"location": "local", "properties": {"availabilitySet": {"id": AVAILABILITY_SET}}}
    for name, body in (("db-0", member), ("one", NOTICED), ("two", PLAIN), ("spot", SPOT)):
        yield await call("PUT", f"{VMS}/{name}", body)
    for name in ("db-0", "one", "two"):
        await arm.read(name)
    yield await call("PATCH", f"{VMS}/one", {"tags": {"a": "b"}})
    yield await call("POST", f"{VMS}/one/reapply")
    for name in ("one", "two"):
        yield await call("POST", f"{VMS}/{name}/restart")
    [event] = await arm.read("one")
    yield await call("POST", acknowledging(f"{VMS}/one", event.id))
    [other] = await arm.read("two")
    yield await call("POST", listing(f"{VMS}/two"), {"value": [other.id]})
    yield await call("POST", f"{VMS}/spot/simulateEviction")
    yield await call("DELETE", f"{VMS}/one")
    yield await call("DELETE", f"{VMS}/db-0")
    await arm.step(30 * MINUTE)
    yield await call("DELETE", AVAILABILITY_SET)


async def outcome(over: Callable[[Store], Store]) -> tuple[list[object], list[Operation]]:
    """All answers and what they leave in the store, and the operations that gave them."""
    async with emulator(over=over) as arm:
        call = Caller(arm)
        answers: list[object] = [answer async for answer in every_kind_of_operation(arm, call)]
        engine = arm.use_cases.engine
        return [*answers, *await engine.ask(contents)], call.operations


async def test_operations_that_are_run_twice_answer_as_if_run_once(anyio_backend: object) -> None:
    (_, carried_out), callers = await outcome_of_lost_races(outcome)

    assert callers >= callers_in("control.arm")
    deciding = {decision(each): each.path for each in OPERATIONS if decision(each)}
    done = {decision(each) for each in carried_out}
    assert {path for name, path in deciding.items() if name not in done} == set()


def decision(operation: Operation) -> str:
    """The transaction function of an operation, by name; empty if it has none of its own."""
    cells = getattr(operation.answer, "__closure__", None) or ()
    names = [f"{c.__module__}.{c.__qualname__}" for c in (cell.cell_contents for cell in cells)]
    return names[0] if "_write" in getattr(operation.answer, "__qualname__", "") else ""
