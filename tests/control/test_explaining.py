"""What the server says of an event: what it waits for, why it is where it is, what comes next."""

from notbefore.service.restoration import RESTORED_AT
from tests.control.steering import Steering


async def explained(control: Steering, event_id: str) -> dict[str, object]:
    found: dict[str, object] = await control.get(f"/v1/events/{event_id}/explain")
    return found


async def test_an_event_waits_for_approval_or_its_not_before(control: Steering) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")

    said = await explained(control, event["event_id"])

    assert said["why"] == "nobody has approved it yet"
    assert said["waits_for"] == [
        "approval by a VM of its scope, or from the control plane",
        "or its NotBefore, 2026-01-05 12:15:00 UTC",
    ]
    assert said["next_step"] == "it starts, and its VMs are interrupted"


async def test_f17_an_event_that_came_back_with_a_backup_says_so(control: Steering) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")
    at = "2026-01-05T12:00:00+00:00"
    await control.services.decider.decide(lambda tx: tx.put_note(RESTORED_AT, at))
    await control.post("/v1/clock/step", {"by": "1s"})
    later = await control.schedule("Freeze", "web")

    said = await explained(control, event["event_id"])
    said_of_later = await explained(control, later["event_id"])

    assert said["why"] == (
        "nobody has approved it yet; the store was restored from a backup at 2026-01-05 12:00:00"
        " UTC, so what happened to it between the backup and then is lost"
    )
    assert said_of_later["why"] == "nobody has approved it yet"


async def test_an_approved_terminate_names_those_that_hold_it_back(control: Steering) -> None:
    """I17."""
    await control.switch_on("api_0")
    first = await control.schedule("Terminate", "api_0")
    second = await control.schedule("Terminate", "api_1")
    await control.post(f"/v1/events/{second['event_id']}/approve")

    said = await explained(control, second["event_id"])

    assert said["waits_for_events"] == [first["event_id"]]
    assert said["waits_for"] == [
        f"approval of Terminate {first['event_id']} for api_0, or its NotBefore"
    ]
    assert said["why"] == "approved by control, but something else holds it back"


async def test_a_hosts_maintenance_names_the_scopes_that_are_not_ready(control: Steering) -> None:
    """I16."""
    await control.switch_on("web", "report")
    made = await control.post("/v1/hosts/rack1/maintain", {"type": "Freeze"})
    ready, other = (event["event_id"] for event in made["events"])
    await control.post(f"/v1/events/{ready}/approve")

    said = await explained(control, ready)

    assert said["waits_for_events"] == [other]


async def test_a_started_event_says_what_started_it(control: Steering) -> None:
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
        "it started because its NotBefore came",
        "it started because its host failed",
        (
            "it started because nobody reads this scope's document,"
            " so there was nobody to give notice to"
        ),
    ]


async def test_an_event_that_is_over_waits_for_nothing(control: Steering) -> None:
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


async def test_a_policy_is_named_as_what_started_an_event(control: Steering) -> None:
    vm = {"name": "calm", "address": "10.0.0.9", "policy": {"approve_user_reboot": True}}
    await control.put_fleet({"vms": [vm]})
    await control.switch_on("calm")
    event = await control.schedule("Reboot", "calm")

    said = await explained(control, event["event_id"])

    assert said["why"] == "it started because the scope's policy approves such events"
    assert said["waits_for"] == ["the actuator, to report that the work is done"]
