"""What the server says of an event: what it waits for, why it is where it is, what comes next."""

from typing import Any

import pytest

from forewarned.core.ids import EventId
from forewarned.service.events.explain import CompletedBy, Explainer
from forewarned.service.ports import Transaction
from forewarned.service.restoration import RESTORED_AT, RESTORED_BECAUSE
from tests.control.control_api import ControlApi


async def explained(control: ControlApi, event_id: str) -> Any:  # JSON
    return await control.get(f"/v1/events/{event_id}/explain")


async def maintain_host(control: ControlApi) -> list[Any]:
    """The events of a maintenance that two scopes share."""
    made = await control.post("/v1/hosts/rack1/maintain", {"type": "Freeze"})
    events: list[Any] = made["events"]
    assert len(events) == 2
    return events


async def test_an_event_waits_for_approval_or_its_not_before(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")

    said = await explained(control, event["event_id"])

    assert said["why"] == "it has not been approved yet"
    assert said["waits_for"] == [
        "approval by a VM of its scope, or by an operator",
        "or its NotBefore, 2026-01-05 12:15:00 UTC",
    ]
    assert said["next_step"] == "it starts, and its VMs are interrupted"


@pytest.mark.parametrize("reason", ["a standby has taken over", None])
async def test_f17_an_event_that_came_back_with_a_backup_says_so(
    control: ControlApi, reason: str | None
) -> None:
    """Or that may have: after a failover no one knows. Earlier versions have not noted the reason."""
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")
    at = "2026-01-05T12:00:00+00:00"

    def note(tx: Transaction) -> None:
        tx.put_note(RESTORED_AT, at)
        if reason is not None:
            tx.put_note(RESTORED_BECAUSE, reason)

    await control.services.engine.decide(note)
    await control.post("/v1/clock/step", {"by": "1s"})
    later = await control.schedule("Freeze", "web")

    said = await explained(control, event["event_id"])
    said_of_later = await explained(control, later["event_id"])

    shown = "" if reason is None else f" ({reason})"
    assert said["why"] == (
        "it has not been approved yet; at 2026-01-05 12:00:00 UTC a server noticed that the store"
        f" may have lost changes{shown}, perhaps changes to this event too"
    )
    assert said_of_later["why"] == "it has not been approved yet"


async def test_an_approved_terminate_names_those_that_hold_it_back(control: ControlApi) -> None:
    """I17."""
    await control.switch_on("api_0")
    first = await control.schedule("Terminate", "api_0")
    second = await control.schedule("Terminate", "api_1")
    await control.post(f"/v1/events/{second['event_id']}/approve")

    said = await explained(control, second["event_id"])

    assert said["waits_for_events"] == [first["event_id"]]
    assert said["waits_for"] == [
        (
            f"approval of Terminate {first['event_id']} for api_0 in scope vmss/api/0,"
            " or that event's NotBefore, 2026-01-05 12:05:00 UTC"
        )
    ]
    assert said["why"] == (
        "approved by control, but 1 Terminate of its scope, due at the same time or earlier, is not"
        " approved yet"
    )


async def test_an_approved_event_of_a_hosts_maintenance_names_the_siblings_it_waits_for(
    control: ControlApi,
) -> None:
    """I16."""
    await control.switch_on("web", "report")
    ready, other = await maintain_host(control)
    await control.post(f"/v1/events/{ready['event_id']}/approve")

    said = await explained(control, ready["event_id"])

    assert said["why"] == (
        "approved by control, but a host's maintenance begins when every scope on the host is"
        " ready, and 1 of 2 is not"
    )
    assert said["waits_for_events"] == [other["event_id"]]
    assert said["waits_for"] == [
        (
            f"approval of Freeze {other['event_id']} for {other['resources'][0]}"
            f" in scope {other['scope']}, or that event's NotBefore, 2026-01-05 12:15:00 UTC"
        )
    ]
    assert said["siblings"] == [
        {
            "event_id": other["event_id"],
            "type": "Freeze",
            "status": "Scheduled",
            "scope": other["scope"],
            "resources": other["resources"],
            "ready": False,
        }
    ]
    assert said["next_step"] == (
        "it starts together with 1 other event of this maintenance, and its VMs are interrupted"
    )


async def test_an_event_nobody_approved_tells_that_its_approval_alone_is_not_enough(
    control: ControlApi,
) -> None:
    """I16."""
    await control.switch_on("web", "report")
    one, other = await maintain_host(control)

    said = await explained(control, one["event_id"])

    assert said["why"] == "it has not been approved yet"
    assert said["waits_for_events"] == [other["event_id"]]
    assert said["waits_for"] == [
        "approval by a VM of its scope, or by an operator",
        (
            f"and approval of Freeze {other['event_id']} for {other['resources'][0]}"
            f" in scope {other['scope']}, or that event's NotBefore, 2026-01-05 12:15:00 UTC"
        ),
        "or its NotBefore, 2026-01-05 12:15:00 UTC",
    ]


async def test_the_last_event_to_be_approved_is_told_that_the_others_are_ready(
    control: ControlApi,
) -> None:
    await control.switch_on("web", "report")
    ready, last = await maintain_host(control)
    await control.post(f"/v1/events/{ready['event_id']}/approve")

    said = await explained(control, last["event_id"])

    assert said["waits_for_events"] == []
    assert [(each["event_id"], each["ready"]) for each in said["siblings"]] == [
        (ready["event_id"], True)
    ]


async def test_a_scope_nobody_reads_is_not_said_to_lack_an_approval(control: ControlApi) -> None:
    """It waits with the others on its host, and holds none of them back."""
    await control.switch_on("web")
    made = await maintain_host(control)
    [unread] = [event for event in made if not event["announced"]]

    said = await explained(control, unread["event_id"])

    assert said["why"] == (
        "no VM is given notice of it, so it needs no approval, but a host's maintenance"
        " begins when every scope on the host is ready, and 1 of 2 is not"
    )


async def test_a_host_full_of_scopes_is_named_in_part(control: ControlApi) -> None:
    names = [f"vm-{number:02}" for number in range(14)]
    await control.put_fleet({"vms": [{"name": name, "host": "rack9"} for name in names]})
    await control.switch_on(*names)
    first, *others = (await control.post("/v1/hosts/rack9/maintain", {"type": "Freeze"}))["events"]
    await control.post(f"/v1/events/{first['event_id']}/approve")

    said = await explained(control, first["event_id"])

    assert len(said["waits_for"]) == 11
    assert said["waits_for"][-1] == "approval of 3 more events"
    assert said["waits_for_events"] == [event["event_id"] for event in others]


async def test_an_event_whose_vms_are_gone_says_so(control: ControlApi) -> None:
    """I19."""
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")
    await control.post(f"/v1/events/{event['event_id']}/approve")
    await control.put_fleet({}, prune="true")

    said = await explained(control, event["event_id"])

    assert said["why"] == (
        "it started because control approved it, and ended before the work was done: VM web is gone"
    )


async def test_a_started_event_says_what_started_it(control: ControlApi) -> None:
    await control.switch_on("web", "report", "cheap", "db-0")
    approved = await control.schedule("Reboot", "web")
    await control.post(f"/v1/events/{approved['event_id']}/approve")
    due = await control.schedule("Preempt", "cheap")
    await control.post("/v1/clock/step", {"by": "30s"})
    [failed] = (await control.post("/v1/hosts/rack2/fail"))["events"]
    unread = await control.schedule("Reboot", "api_0")

    causes = [
        (await explained(control, event["event_id"]))["why"]
        for event in (approved, due, failed, unread)
    ]

    assert causes == [
        "it started because control approved it",
        "it started because its NotBefore was reached",
        "it started because its host failed",
        (
            "it started because it gives no notice: no VM reads this scope's document, or the VM's model"
            " or the request asks for none"
        ),
    ]


async def test_an_event_that_is_over_waits_for_nothing(control: ControlApi) -> None:
    await control.switch_on("web")
    done = await control.schedule("Reboot", "web")
    await control.post(f"/v1/events/{done['event_id']}/approve")
    await control.post(f"/v1/events/{done['event_id']}/complete")
    off = await control.schedule("Reboot", "web")
    await control.post(f"/v1/events/{off['event_id']}/cancel", {"reason": "a better idea"})

    completed = await explained(control, done["event_id"])
    canceled = await explained(control, off["event_id"])

    assert completed["waits_for"] == canceled["waits_for"] == []
    assert completed["why"] == "it started because control approved it, and the work is done"
    assert canceled["why"] == "it was canceled: a better idea"
    assert canceled["next_step"] == "nothing: it is over"


async def test_a_policy_is_named_as_what_started_an_event(control: ControlApi) -> None:
    vm = {"name": "calm", "address": "10.0.0.9", "policy": {"approve_user_reboot": True}}
    await control.put_fleet({"vms": [vm]})
    await control.switch_on("calm")
    event = await control.schedule("Reboot", "calm")

    said = await explained(control, event["event_id"])

    assert said["why"] == "it started because the scope's policy approves such events"


async def test_where_nothing_carries_events_out_an_operator_is_waited_for(
    control: ControlApi,
) -> None:
    event = await control.schedule("Reboot", "web")

    said = await explained(control, event["event_id"])

    assert said["waits_for"] == [
        (
            "an operator to do the work and then complete the event:"
            f" forewarned complete {event['event_id']}"
        )
    ]


async def test_in_an_emulator_the_simulated_work_is_waited_for(control: ControlApi) -> None:
    event = await control.schedule("Reboot", "web")
    emulator = Explainer(control.services.engine, completed_by=CompletedBy.SIMULATION)

    said = await emulator.explain(EventId(event["event_id"]))

    assert said.waits_for == ("the simulated work to finish",)
