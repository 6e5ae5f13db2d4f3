"""What ARM is told about publishing decides what a receiver of Event Grid's schema is sent."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from azure.eventgrid import EventGridEvent

from tests.cluster.waiting import wait_until
from tests.end_to_end.server_process import Server, serving
from tests.publishing.receiver import Received, Receiver, Reply, receiving

GROUP: Final = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg1"
COMPUTE: Final = f"{GROUP}/providers/Microsoft.Compute"
VERSION: Final = "api-version=2024-11-01"
# Any: JSON.
POLICIES: Final[Mapping[str, dict[str, Any]]] = {
    "none": {},
    "off": {"eventGridAndResourceGraph": {"enable": False}},
    # Last: when its messages have arrived, those of the others would have as well.
    "on": {"eventGridAndResourceGraph": {"enable": True}},
}


def ask(server: Server, method: str, path: str, body: object = None) -> None:
    answer = server.ask_arm(method, f"{path}?{VERSION}", body)
    assert answer.status < 300, answer.body


def put(server: Server, path: str, *, policy: str = "none", **properties: object) -> None:
    if targets := POLICIES[policy]:
        properties["scheduledEventsPolicy"] = {
            "scheduledEventsAdditionalPublishingTargets": targets
        }
    # Only scale sets have a size of their own.
    sku = {"name": "Standard_D2s_v5", "capacity": 1}
    ask(server, "PUT", path, {"location": "local", "sku": sku, "properties": properties})


def restart(server: Server, path: str, *, vm: str) -> None:
    # VMs that read are given notice.
    server.get(f"/vm/{vm}/metadata/scheduledevents?api-version=2020-07-01")
    ask(server, "POST", f"{path}/restart")


def restart_each(server: Server, policy: str) -> None:
    """A VM, one of a scale set and one of an availability set, which have this policy."""
    alone = f"{COMPUTE}/virtualMachines/web-{policy}"
    put(server, alone, policy=policy)
    restart(server, alone, vm=f"web-{policy}")

    scale_set = f"{COMPUTE}/virtualMachineScaleSets/api-{policy}"
    put(server, scale_set, policy=policy, virtualMachineProfile={})
    restart(server, f"{scale_set}/virtualMachines/0", vm=f"api-{policy}_0")

    availability_set = f"{COMPUTE}/availabilitySets/db-{policy}"
    put(server, availability_set, policy=policy)
    member = f"{COMPUTE}/virtualMachines/db-{policy}-0"
    put(server, member, availabilitySet={"id": availability_set})
    restart(server, member, vm=f"db-{policy}-0")


def subscribe(server: Server, receiver: Receiver, shape: str) -> None:
    target = {"kind": "webhook", "url": f"{receiver.url}/{shape}"}
    declared = {"name": shape, "target": target, "shape": {"kind": shape}}
    server.call("POST", "/v1/subscriptions", declared)


def wait_until_delivered(server: Server) -> None:
    def is_done() -> bool:
        found = server.call("GET", "/v1/subscriptions")["subscriptions"]
        return not any(each["health"]["pending"] for each in found)

    wait_until(is_done)


def answer(received: Received) -> Reply:
    """Also to Event Grid's handshake."""
    if received.headers.get("aeg-event-type") != "SubscriptionValidation":
        return Reply()
    [asked] = received.json
    said = {"validationResponse": asked["data"]["validationCode"]}
    return Reply(body=json.dumps(said).encode())


async def test_a_vm_and_sets_are_published_to_event_grid_if_their_policy_in_arm_asks_for_it(
    tmp_path: Path,
) -> None:
    """Other shapes are sent the events of all of them."""

    def happen(server: Server, receiver: Receiver) -> None:
        ask(server, "PUT", GROUP, {"location": "local"})
        subscribe(server, receiver, "event-grid")
        subscribe(server, receiver, "cloudevents")
        for policy in POLICIES:
            restart_each(server, policy)
        wait_until_delivered(server)

    with serving(tmp_path) as server:
        async with receiving(answer) as receiver:
            await asyncio.to_thread(happen, server, receiver)

    handshake, *grid = [each.json[0] for each in receiver.received if each.path == "/event-grid"]
    subjects = {EventGridEvent.from_dict(each).subject for each in grid}
    resources = {subject.partition("/providers/microsoft.maintenance/")[0] for subject in subjects}
    others = {
        each.json["data"]["scope"] for each in receiver.received if each.path != "/event-grid"
    }
    assert handshake["eventType"] == "Microsoft.EventGrid.SubscriptionValidationEvent"
    assert resources == {
        f"{COMPUTE}/virtualMachines/web-on",
        f"{COMPUTE}/virtualMachineScaleSets/api-on",
        f"{COMPUTE}/availabilitySets/db-on",
    }
    assert len(grid) == len(resources)
    assert len(others) == len(POLICIES) * len(resources)
