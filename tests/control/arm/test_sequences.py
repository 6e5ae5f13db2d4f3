"""Any calls of ARM's clients in any order: the fleet, the scopes and the events always agree.

What is looked at after each step is the state as clients see it, beside the store it came from.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx2
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from typing_extensions import override

from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import Document, document
from forewarned.core.rules import Rules
from forewarned.service.listings import EventFilter, HistoryFilter
from forewarned.service.ports import Snapshot
from forewarned.service.records import Binding, Declaration, EventRecord, OperationRecord, Saved
from tests.control.arm.asking import ROOT, SUBSCRIPTION
from tests.control.arm.emulator import Emulator
from tests.effort import few

T = TypeVar("T")

HERE: Final = f"/subscriptions/{SUBSCRIPTION}"
GROUPS: Final = f"{HERE}/resourceGroups"
ALL: Final = f"{HERE}/providers/Microsoft.Compute"
MANY: Final = 1_000_000

# Most of what is asked for is to be there.
groups = st.sampled_from(["one", "one", "one", "two"])
sets = st.sampled_from(["alpha", "beta"])
machines = st.sampled_from(["vm-a", "vm-b", "vm-c"])
picks = st.integers(min_value=0, max_value=9)
capacities = st.integers(min_value=0, max_value=4)
timeouts = st.sampled_from(["PT5M", "PT10M", "PT15M", "PT99M", 7])
actions = st.sampled_from(
    ["restart", "redeploy", "reimage", "performMaintenance", "start", "powerOff", "deallocate"]
)
profiles = st.one_of(
    st.none(),
    st.builds(
        lambda timeout, enable: {
            "terminateNotificationProfile": {"notBeforeTimeout": timeout, "enable": enable}
        },
        timeouts,
        st.sampled_from([True, False, "true"]),
    ),
)
spans = st.sampled_from([timedelta(minutes=number) for number in (0, 1, 5, 10, 16)])


class Looked:
    """The store, all at one instant."""

    def __init__(self, snapshot: Snapshot, operations: list[str]) -> None:
        self.scopes: dict[ScopeId, Saved] = {each.scope.id: each for each in snapshot.scopes()}
        self.bindings: dict[str, Binding] = {each.name: each for each in snapshot.bindings()}
        self.events: dict[EventId, EventRecord] = {
            each.event.id: each for each in snapshot.events(EventFilter(limit=MANY))
        }
        self.declarations: list[Declaration] = list(snapshot.declarations("/"))
        self.history = len(snapshot.history(HistoryFilter(limit=MANY)))
        self.operations: dict[str, OperationRecord] = {}
        for each in operations:
            found = snapshot.operation(each.partition("?")[0].rpartition("/")[2])
            assert found is not None, "an operation was forgotten"
            self.operations[each] = found

    def as_values(self) -> object:
        return self.scopes, self.bindings, self.events, self.declarations, self.history


class ArmCalls(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.Runner()
        self.arm = Emulator(self.folder / "store.db", rules=Rules())
        self.operations: list[str] = []
        self.given: dict[tuple[str, int, str], str] = {}
        """The vmId that each instance number, of each set that ever was, has been given to."""
        self.lives: dict[str, int] = {}
        """How often something was made at this path: a set that is gone takes its numbers along."""

    @initialize()
    def begin(self) -> None:
        self.run(self.arm.start())
        self.call("PUT", f"{GROUPS}/one", {"location": "local"})
        told = {"terminateNotificationProfile": {"enable": True}}
        self.call("PUT", _set("one", "alpha"), _set_body(2, told))
        self.call("PUT", _set("one", "beta"), _set_body(1, told, mode="Flexible"))
        self.call("PUT", _machine("one", "vm-a"), {"properties": {"priority": "Spot"}})
        self.run(self.arm.read("alpha_0"))
        self.run(self.arm.read("vm-a"))

    @override
    def teardown(self) -> None:
        self.run(self.arm.stop())
        self.loop.close()
        shutil.rmtree(self.folder)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    def look(self) -> Looked:
        ask = self.arm.use_cases.engine.ask
        return self.run(ask(lambda snapshot: Looked(snapshot, self.operations)))

    def call(self, method: str, path: str, body: object = None) -> httpx2.Response:
        """Whatever is refused has changed nothing."""
        before = self.look().as_values()
        response = self.run(self.arm.ask(method, path, body))
        assert response.status_code < 500, response.text
        if response.is_client_error:
            assert response.json()["error"]["message"]
            assert self.look().as_values() == before, (
                f"{method} {path} was refused: {response.text}"
            )
        if response.status_code == 201:
            self.lives[path] = self.lives.get(path, 0) + 1
        operation = response.headers.get("Azure-AsyncOperation")
        if operation is not None:
            assert response.is_success
            self.operations.append(operation.removeprefix(ROOT))
        assert (response.status_code == 202) <= (operation is not None)
        return response

    def listed(self, path: str) -> list[Any]:
        answer: Any = self.run(self.arm.good("GET", path))
        assert "nextLink" not in answer
        items: list[Any] = answer["value"]
        return items

    # --- groups ----------------------------------------------------------------------------------

    @rule(group=groups)
    def put_group(self, group: str) -> None:
        self.call("PUT", f"{GROUPS}/{group}", {"location": "local"})

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        self.call("DELETE", f"{GROUPS}/{group}")

    # --- scale sets ------------------------------------------------------------------------------

    @rule(group=groups, name=sets, capacity=capacities, profile=profiles, spot=st.booleans())
    def put_set(self, group: str, name: str, capacity: int, profile: Any, *, spot: bool) -> None:
        body = _set_body(capacity, profile, mode="Flexible" if name == "beta" else "Uniform")
        if spot and name == "beta":
            body["properties"]["virtualMachineProfile"]["priority"] = "Spot"
        self.call("PUT", _set(group, name), body)

    @rule(group=groups, name=sets, profile=profiles, mode=st.sampled_from(["Manual", "Automatic"]))
    def patch_set(self, group: str, name: str, profile: Any, mode: str) -> None:
        inner = {"scheduledEventsProfile": profile}
        properties = {"virtualMachineProfile": inner, "upgradePolicy": {"mode": mode}}
        self.call("PATCH", _set(group, name), {"properties": properties})

    @rule(group=groups, name=sets, capacity=capacities)
    def scale_set(self, group: str, name: str, capacity: int) -> None:
        """As `az vmss scale` does it."""
        body = {"location": "local", "sku": {"name": "Standard_D2s_v5", "capacity": capacity}}
        self.call("PUT", _set(group, name), body)

    @rule(
        group=groups,
        name=sets,
        word=st.one_of(actions, st.sampled_from(["delete", "manualupgrade"])),
        chosen=st.lists(picks, max_size=3),
        everything=st.booleans(),
    )
    def operate_set(
        self, group: str, name: str, word: str, chosen: list[int], *, everything: bool
    ) -> None:
        ids = ["*"] if everything else [self._instance(group, name, pick) for pick in chosen]
        self.call("POST", f"{_set(group, name)}/{word}", {"instanceIds": ids})

    @rule(group=groups, name=sets, pick=picks, word=st.one_of(actions, st.just("simulateEviction")))
    def operate_instance(self, group: str, name: str, pick: int, word: str) -> None:
        instance = self._instance(group, name, pick)
        self.call("POST", f"{_set(group, name)}/virtualMachines/{instance}/{word}")

    @rule(group=groups, name=sets, forced=st.booleans())
    def delete_set(self, group: str, name: str, *, forced: bool) -> None:
        force = "&forceDeletion=true" if forced else ""
        self.call("DELETE", f"{_set(group, name)}?api-version=2024-11-01{force}")

    def _instance(self, group: str, name: str, pick: int) -> str:
        response = self.call("GET", f"{_set(group, name)}/virtualMachines")
        here = response.json().get("value", [])
        return str(here[pick % len(here)]["instanceId"]) if here and pick < 9 else "99"

    # --- VMs -------------------------------------------------------------------------------------

    @rule(
        group=groups,
        name=machines,
        profile=profiles,
        priority=st.sampled_from(["Regular", "Spot"]),
        inside=st.sampled_from(["", "", "beta", "avail"]),
    )
    def put_machine(self, group: str, name: str, profile: Any, priority: str, inside: str) -> None:
        properties: dict[str, Any] = {"priority": priority, "scheduledEventsProfile": profile}
        if inside == "beta":
            properties["virtualMachineScaleSet"] = {"id": _set(group, "beta")}
        elif inside:
            path = f"{GROUPS}/{group}/providers/Microsoft.Compute/availabilitySets/avail"
            self.call("PUT", path, {})
            properties["availabilitySet"] = {"id": path}
        self.call("PUT", _machine(group, name), {"properties": properties})

    @rule(group=groups, name=machines, word=st.one_of(actions, st.just("simulateEviction")))
    def operate_machine(self, group: str, name: str, word: str) -> None:
        self.call("POST", f"{_machine(group, name)}/{word}")

    @rule(group=groups, name=machines)
    def delete_machine(self, group: str, name: str) -> None:
        self.call("DELETE", _machine(group, name))

    # --- VMs, time, and the server's own life ----------------------------------------------------

    @rule(pick=picks)
    def read(self, pick: int) -> None:
        name = self._vm(pick)
        if name:
            self.run(self.arm.read(name))

    @rule(pick=picks, which=picks)
    def approve(self, pick: int, which: int) -> None:
        name = self._vm(pick)
        events = self.run(self.arm.read(name)) if name else ()
        if events:
            self.run(self.arm.approve(name, events[which % len(events)]))

    @rule(span=spans)
    def step(self, span: timedelta) -> None:
        self.run(self.arm.step(span))

    @precondition(lambda self: self.operations)
    @rule()
    def restart_server(self) -> None:
        before = self.look().as_values()

        self.run(self.arm.restart())

        assert self.look().as_values() == before

    def _vm(self, pick: int) -> str:
        names = sorted(self.look().bindings)
        return names[pick % len(names)] if names else ""

    # --- laws ------------------------------------------------------------------------------------

    @invariant()
    def all_agree(self) -> None:
        if not hasattr(self.arm, "use_cases"):
            return
        self.run(self.arm.step(timedelta(0)))
        looked = self.look()
        self._scopes_and_events_agree(looked)
        self._the_fleet_and_the_scopes_agree(looked)
        self._operations_and_events_agree(looked)

    def _scopes_and_events_agree(self, looked: Looked) -> None:
        for scope_id, saved in looked.scopes.items():
            scope = saved.scope
            page = self.arm.documents.board.page(scope_id)
            assert page is not None
            assert page.document == document(scope)
            shown: Document = page.document
            assert shown.events == tuple(e for e in scope.events.values() if e.announced)
            for event in scope.events.values():
                assert set(event.resources) <= scope.resources.keys(), f"{event} names the gone"
                assert looked.events[event.id].ended_at is None
        open_ids = {id_ for id_, record in looked.events.items() if record.ended_at is None}
        assert open_ids == {id_ for each in looked.scopes.values() for id_ in each.scope.events}

    def _the_fleet_and_the_scopes_agree(self, looked: Looked) -> None:
        in_scopes = {name for each in looked.scopes.values() for name in each.scope.resources}
        assert in_scopes == looked.bindings.keys()
        for name, binding in looked.bindings.items():
            assert name in looked.scopes[binding.scope_id].scope.resources
        addresses = [binding.address for binding in looked.bindings.values()]
        assert len(addresses) == len(set(addresses))
        shown = {each["name"]: each for each in self.listed(f"{ALL}/virtualMachines")}
        for each in self.listed(f"{ALL}/virtualMachineScaleSets"):
            shown |= self._instances(each)
        assert shown.keys() == looked.bindings.keys()
        for name, each in shown.items():
            assert each["properties"]["vmId"] == looked.bindings[name].profile.vm_id
            is_leaving = any(
                event.type == "Terminate" and name in event.resources
                for event in looked.scopes[looked.bindings[name].scope_id].scope.events.values()
            )
            assert (each["properties"]["provisioningState"] == "Deleting") == is_leaving
        used = {binding.profile.resource_group for binding in looked.bindings.values()}
        assert used <= {each["name"] for each in self.listed(GROUPS)}

    def _instances(self, one: Any) -> dict[str, Any]:
        instances = self.listed(f"{one['id']}/virtualMachines")
        staying = [
            each for each in instances if each["properties"]["provisioningState"] != "Deleting"
        ]
        assert one["sku"]["capacity"] == len(staying), f"capacity of {one['id']}"
        if one["properties"]["orchestrationMode"] == "Uniform":
            for each in instances:
                key = (one["id"], self.lives.get(one["id"], 0), each["instanceId"])
                vm_id = each["properties"]["vmId"]
                assert self.given.setdefault(key, vm_id) == vm_id, f"{key} was used twice"
        return {each["name"]: each for each in instances}

    def _operations_and_events_agree(self, looked: Looked) -> None:
        # What was over stays over, so only the newest are worth asking for.
        for path in self.operations[-8:]:
            record = looked.operations[path]
            found = [looked.events[each] for each in record.event_ids]
            is_open = any(each.ended_at is None for each in found)
            status = self.run(self.arm.status(path))
            assert (status == "InProgress") == is_open, f"{record}: {status}"


def _set(group: str, name: str) -> str:
    return f"{GROUPS}/{group}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"


def _machine(group: str, name: str) -> str:
    return f"{GROUPS}/{group}/providers/Microsoft.Compute/virtualMachines/{name}"


def _set_body(capacity: int, profile: Any, *, mode: str = "Uniform") -> dict[str, Any]:
    return {
        "location": "local",
        "sku": {"name": "Standard_D2s_v5", "capacity": capacity},
        "properties": {
            "orchestrationMode": mode,
            "virtualMachineProfile": {"scheduledEventsProfile": profile},
        },
    }


TestArmCalls = ArmCalls.TestCase
TestArmCalls.settings = few(5, steps=25)
