from typing import Any

import pytest

from forewarned.control.http.bodies import OWN_ACTORS
from tests.builders import NOON, OPERATOR, A
from tests.control.control_api import ControlApi, later


async def test_an_event_is_shown_whole(control: ControlApi) -> None:
    await control.switch_on("web")

    event = await control.schedule("Reboot", "web", duration="PT9S", description="new kernel")

    assert event == {
        "event_id": "00000001-0000-4000-8000-000000000000",
        "type": "Reboot",
        "status": "Scheduled",
        "source": "User",
        "scope": "vm/web",
        "resources": ["web"],
        "not_before": later(minutes=15),
        "created_at": later(),
        "started_at": None,
        "start_cause": None,
        "ended_at": None,
        "end_reason": "",
        "description": "new kernel",
        "duration": "9s",
        "announced": True,
        "approval": None,
        "maintenance": None,
    }
    assert await control.get(f"/v1/events/{event['event_id']}") == event


async def test_scheduling_answers_that_something_was_created(control: ControlApi) -> None:
    response = await control.http.post(
        "/v1/events", json={"type": "Freeze", "resources": ["web", "report"]}
    )

    assert response.status_code == 201
    assert [event["scope"] for event in response.json()["events"]] == ["vm/web", "vm/report"]


@pytest.mark.parametrize(
    ("type_", "vm", "source"),
    [
        ("Reboot", "web", "User"),
        ("Redeploy", "web", "User"),
        ("Terminate", "api_0", "User"),
        ("Freeze", "web", "Platform"),
        ("Preempt", "cheap", "Platform"),
    ],
)
async def test_who_causes_an_event_follows_from_its_type(
    control: ControlApi, type_: str, vm: str, source: str
) -> None:
    event = await control.schedule(type_, vm)

    assert event["source"] == source


async def test_the_source_may_be_given(control: ControlApi) -> None:
    event = await control.schedule("Reboot", "web", source="Platform")

    assert event["source"] == "Platform"


async def test_notice_may_be_given_and_be_short_in_an_emulator(control: ControlApi) -> None:
    await control.switch_on("web")

    event = await control.schedule("Reboot", "web", notice="30s", short_notice=True)

    assert event["not_before"] == later(seconds=30)


async def test_approving_starts_an_event_and_says_who_did(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")

    started = await control.post(
        f"/v1/events/{event['event_id']}/approve", **{"Forewarned-Actor": "cli:ann"}
    )

    assert started["status"] == "Started"
    assert started["not_before"] is None
    assert started["started_at"] == later()
    assert started["start_cause"] == "approved"
    assert started["approval"] == {"by": "cli:ann", "at": later(), "by_policy": False}


async def test_an_event_id_may_be_in_lower_case(control: ControlApi) -> None:
    event = await control.schedule("Reboot", "web")

    assert await control.get(f"/v1/events/{event['event_id'].lower()}") == event


async def test_canceling_says_why(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")

    answer = await control.post(f"/v1/events/{event['event_id']}/cancel", {"reason": "not today"})

    [canceled] = answer["events"]
    assert canceled["status"] == "Canceled"
    assert canceled["end_reason"] == "not today"
    assert canceled["ended_at"] == later()


async def test_canceling_with_too_long_a_reason_is_refused(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")
    path = f"/v1/events/{event['event_id']}"

    status, error = await control.refused("POST", f"{path}/cancel", {"reason": "x" * 1001})

    assert (status, error["code"], error["field"]) == (400, "reason_too_long", "reason")
    assert error["message"] == "a reason of 1001 characters is longer than 1000"
    assert (await control.get(path))["status"] == "Scheduled"


async def test_canceling_needs_no_body(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")

    answer = await control.post(f"/v1/events/{event['event_id']}/cancel")

    assert answer["events"][0]["end_reason"] == ""


async def test_a_started_event_is_completed_by_hand(control: ControlApi) -> None:
    event = await control.schedule("Reboot", "web")

    completed = await control.post(f"/v1/events/{event['event_id']}/complete")

    assert completed["status"] == "Completed"
    assert completed["ended_at"] == later()


async def test_events_are_listed_by_what_they_are(control: ControlApi) -> None:
    await control.switch_on("web", "report")
    reboot = await control.schedule("Reboot", "web")
    freeze = await control.schedule("Freeze", "report")
    over = await control.schedule("Redeploy", "web")
    await control.post(f"/v1/events/{over['event_id']}/cancel")

    async def ids(**query: str | int) -> list[str]:
        return [each["event_id"] for each in (await control.get("/v1/events", **query))["events"]]

    first, second, third = (each["event_id"] for each in (reboot, freeze, over))
    assert await ids() == [first, second]
    assert await ids(status="all") == [first, second, third]
    assert await ids(status="all", limit=1) == [third]
    assert await ids(status="Canceled") == [third]
    assert await ids(status="Started") == []
    assert await ids(vm="WEB") == [first]
    assert await ids(scope="vm/report") == [second]
    assert await ids(type="Reboot") == [first]
    assert await ids(vm="nobody") == []


async def test_an_event_is_explained(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")

    told = await control.get(f"/v1/events/{event['event_id']}/explain")

    assert told["event"] == event
    assert told["now"] == later()
    assert told["why"] == "it has not been approved yet"
    assert "approval" in told["waits_for"][0]
    assert told["waits_for_events"] == []
    assert told["next_step"]
    assert [row["action"] for row in told["history"]] == ["scheduled"]


async def test_a_failed_host_starts_events_in_every_scope_on_it(control: ControlApi) -> None:
    await control.switch_on("web", "report")

    answer = await control.post("/v1/hosts/rack1/fail")

    found = [(event["scope"], event["status"], event["start_cause"]) for event in answer["events"]]
    assert found == [
        ("vm/report", "Started", "host_failure"),
        ("vm/web", "Started", "host_failure"),
    ]


async def test_a_predicted_failure_is_announced_days_ahead(control: ControlApi) -> None:
    await control.switch_on("cheap")

    answer = await control.post("/v1/hosts/rack2/predict")

    [event] = answer["events"]
    assert (event["type"], event["not_before"]) == ("Redeploy", later(days=7))


async def test_maintenance_of_a_host_waits_for_every_scope(control: ControlApi) -> None:
    await control.switch_on("web", "report")

    answer = await control.post("/v1/hosts/rack1/maintain", {"type": "Freeze", "duration": "9s"})
    first, second = answer["events"]
    approved = await control.post(f"/v1/events/{first['event_id']}/approve")
    told = await control.get(f"/v1/events/{first['event_id']}/explain")

    assert first["maintenance"] == second["maintenance"]
    assert approved["status"] == "Scheduled"
    assert told["waits_for_events"] == [second["event_id"]]


async def test_maintenance_of_a_set_begins_with_its_first_update_domain(
    control: ControlApi,
) -> None:
    await control.switch_on("db-0")

    answer = await control.post("/v1/scopes/avset/db/maintain", {"type": "Reboot"})

    [event] = answer["events"]
    scope = await control.get("/v1/scopes/avset/db")
    assert event["resources"] == ["db-0", "db-2"]
    assert scope["maintenance"] == {
        "id": event["maintenance"],
        "type": "Reboot",
        "remaining_update_domains": [1],
    }


async def test_canceling_a_part_of_maintenance_answers_with_all_of_it(control: ControlApi) -> None:
    await control.switch_on("web", "report")
    events = (await control.post("/v1/hosts/rack1/maintain", {"type": "Freeze"}))["events"]

    answer = await control.post(f"/v1/events/{events[0]['event_id']}/cancel")

    assert {e["event_id"] for e in answer["events"]} == {e["event_id"] for e in events}


async def test_history_tells_who_did_what_from_where(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")

    answer = await control.get("/v1/history", event=event["event_id"])

    assert answer["next"] is None
    [row] = answer["history"]
    assert row.pop("id") > 0
    assert row == {
        "at": later(),
        "actor": "control",
        "address": "10.9.9.9",
        "action": "scheduled",
        "scope": "vm/web",
        "event_id": event["event_id"],
        "event_type": "Reboot",
        "resources": ["web"],
        "cause": "",
    }


async def test_history_tells_of_what_concerns_no_scope(control: ControlApi) -> None:
    """I29, S12"""
    await control.store.transact(
        lambda tx: tx.record("turned_away", by=OPERATOR, cause="the token has expired")
    )

    [row] = (await control.get("/v1/history", actor=OPERATOR.name))["history"]

    assert row.pop("id") > 0
    assert row == {
        "at": later(),
        "actor": OPERATOR.name,
        "address": OPERATOR.address,
        "action": "turned_away",
        "scope": "",
        "event_id": None,
        "event_type": None,
        "resources": [],
        "cause": "the token has expired",
    }
    assert (await control.get("/v1/history", limit=1))["history"][0]["action"] == "turned_away"


async def test_history_is_read_page_by_page_newest_first(control: ControlApi) -> None:
    whole = await control.get("/v1/history", limit=1000)

    rows: list[Any] = []
    page = await control.get("/v1/history", limit=3)
    rows += page["history"]
    while page["next"] is not None:
        page = await control.get("/v1/history", limit=3, before=page["next"])
        rows += page["history"]

    assert rows == whole["history"]
    assert [row["id"] for row in rows] == sorted((row["id"] for row in rows), reverse=True)


async def test_history_is_narrowed(control: ControlApi) -> None:
    await control.schedule("Reboot", "web")
    await control.schedule("Freeze", "report")

    async def told(**query: str) -> list[tuple[str, list[str]]]:
        rows = (await control.get("/v1/history", **query))["history"]
        return [(row["action"], row["resources"]) for row in rows if row["event_id"]]

    assert await told(vm="web") == [("started", ["web"])]
    assert await told(scope="vm/report") == [("started", ["report"])]
    assert await told(type="Freeze") == [("started", ["report"])]
    assert await told(actor="somebody") == []
    assert await told(event=A) == []
    assert await told(action="canceled") == []
    assert len(await told(action="started", since=f"{NOON:%FT%TZ}")) == 2
    assert await told(until=f"{NOON:%FT%TZ}") == []


@pytest.mark.parametrize(
    ("label", "actor"),
    [
        ("cli:ann", "cli:ann"),
        ("a b", "a b"),
        ("x" * 64, "x" * 64),
        ("x" * 65, "control"),
        ("", "control"),
        ("tab\there", "control"),
        ("caf\xe9", "control"),
        ("vm:web", "control"),
        *((name, "control") for name in sorted(OWN_ACTORS)),
    ],
)
async def test_who_asks_is_a_label_if_it_is_a_sane_one(
    control: ControlApi, label: str, actor: str
) -> None:
    await control.http.post(
        "/v1/events",
        json={"type": "Reboot", "resources": ["web"]},
        headers=[(b"Forewarned-Actor", label.encode("latin-1"))],
    )

    rows = (await control.get("/v1/history", limit=1))["history"]

    assert rows[0]["actor"] == actor
