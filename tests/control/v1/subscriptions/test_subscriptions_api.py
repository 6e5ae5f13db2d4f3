"""Subscriptions over `/v1`: added, looked at, changed, tried and removed, without secrets."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from forewarned.core.model import Actor
from forewarned.service.subscriptions.model import DeliveryState
from forewarned.service.subscriptions.subscriptions import Declared
from forewarned.service.subscriptions.targets import Webhook
from tests.control.control_api import ControlApi, control_api
from tests.publishing.receiver import Received, Reply, receiving
from tests.service.subscriptions.deliveries import queue_message

URL = "https://ops.example.com/in?token=abc"
SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
OPS = {"name": "ops", "target": {"kind": "webhook", "url": URL}}


@pytest.fixture
async def control(anyio_backend: object) -> AsyncIterator[ControlApi]:
    async with control_api() as made:
        yield made


async def add(control: ControlApi, **more: object) -> Any:
    return await control.post("/v1/subscriptions", {**OPS, **more})


async def test_one_is_added_and_its_secret_is_shown_only_then(control: ControlApi) -> None:
    answer = await control.http.post("/v1/subscriptions", json=OPS)

    added = answer.json()
    assert answer.status_code == 201
    assert added["secret"].startswith("whsec_")
    assert added["subscription"]["target"] == {
        "kind": "webhook",
        "place": "https://ops.example.com",
        "secrets": 1,
        "secret_file": None,
    }
    assert added["subscription"]["shape"]["kind"] == "cloudevents"
    assert added["subscription"]["condition"] == "waiting"
    for path in ("/v1/subscriptions", "/v1/subscriptions/ops"):
        shown = (await control.http.get(path)).text
        assert "ops" in shown
        assert added["secret"] not in shown
        assert "token=abc" not in shown


async def test_a_secret_that_was_given_is_not_shown_at_all(control: ControlApi) -> None:
    answer = await add(control, target={**OPS["target"], "secrets": [SECRET]})  # type: ignore[dict-item]

    assert answer["secret"] is None
    assert SECRET not in str(answer)
    assert answer["subscription"]["target"]["secrets"] == 1


async def test_secrets_in_a_file_of_the_server_are_said_to_be_there(control: ControlApi) -> None:
    target = Webhook(url=URL, secret_file="/etc/forewarned/ops.secret")
    declared = Declared(name="ops", target=target)
    subscriptions = control.services.use_cases.subscriptions
    await subscriptions.keep([declared], by=Actor(name="settings"))

    shown = (await control.get("/v1/subscriptions/ops"))["target"]

    assert (shown["secrets"], shown["secret_file"]) == (0, "/etc/forewarned/ops.secret")


async def test_a_filter_and_a_shape_are_shown_as_they_were_given(control: ControlApi) -> None:
    wanted = {"types": ["Reboot"], "statuses": ["Started"], "sources": ["User"]}
    names = {"scopes": ["vmss/*"], "vms": ["web-*"]}

    answer = await add(
        control, filter={**wanted, **names}, shape={"kind": "template", "template": "{{ status }}"}
    )

    assert answer["subscription"]["filter"] == {**wanted, **names}
    assert answer["subscription"]["shape"]["template"] == "{{ status }}"


async def test_a_change_keeps_the_secret_and_says_nothing_of_it(control: ControlApi) -> None:
    await add(control)
    body = {"target": {"kind": "webhook", "url": "https://new.example.com/"}}

    answer = await control.http.patch("/v1/subscriptions/ops", json=body)

    changed = answer.json()
    assert answer.status_code == 200
    assert changed["secret"] is None
    assert changed["subscription"]["target"]["place"] == "https://new.example.com"
    assert changed["subscription"]["target"]["secrets"] == 1


async def test_a_change_leaves_what_it_does_not_name(control: ControlApi) -> None:
    await add(control, filter={"types": ["Reboot"]}, shape={"kind": "event-grid"})

    filtered = await control.http.patch("/v1/subscriptions/ops", json={"filter": {"vms": ["a*"]}})
    nothing = await control.http.patch("/v1/subscriptions/ops", json={})

    changed = filtered.json()["subscription"]
    assert (changed["filter"]["types"], changed["filter"]["vms"]) == ([], ["a*"])
    assert changed["shape"]["kind"] == "event-grid"
    assert changed["target"]["place"] == "https://ops.example.com"
    assert nothing.json()["subscription"] == changed


async def test_a_change_that_does_not_fit_the_rest_is_refused(control: ControlApi) -> None:
    await add(control, shape={"kind": "event-grid"})
    apprise = {"target": {"kind": "apprise", "url": "json://127.0.0.1"}}

    status, error = await control.refused("PATCH", "/v1/subscriptions/ops", apprise)
    both = await control.http.patch(
        "/v1/subscriptions/ops", json={**apprise, "shape": {"kind": "cloudevents"}}
    )
    again, wrong = await control.refused(
        "PATCH", "/v1/subscriptions/ops", {"shape": {"kind": "event-grid"}}
    )

    assert (status, error["field"]) == (400, "target")
    assert both.json()["subscription"]["target"]["kind"] == "apprise"
    assert (again, wrong["field"]) == (400, "shape")


async def test_a_secret_is_rotated_with_the_one_before(control: ControlApi) -> None:
    first = (await add(control))["secret"]

    rotated = await control.post("/v1/subscriptions/ops/rotate")
    again = await control.post("/v1/subscriptions/ops/rotate")

    assert len({first, rotated["secret"], again["secret"]}) == 3
    assert rotated["subscription"]["target"]["secrets"] == 2
    assert again["subscription"]["target"]["secrets"] == 2


async def test_one_is_paused_resumed_and_removed(control: ControlApi) -> None:
    await add(control)

    paused = await control.post("/v1/subscriptions/ops/pause")
    resumed = await control.post("/v1/subscriptions/ops/resume")
    gone = await control.http.delete("/v1/subscriptions/ops")

    assert (paused["state"], paused["condition"]) == ("paused", "paused")
    assert resumed["state"] == "active"
    assert gone.json()["name"] == "ops"
    assert await control.get("/v1/subscriptions") == {"subscriptions": []}
    rows = (await control.get("/v1/history"))["history"]
    assert [row["action"] for row in rows if "subscription" in row["action"]] == [
        "subscription_removed",
        "subscription_resumed",
        "subscription_paused",
        "subscription_added",
    ]


async def test_a_test_message_is_sent_and_signed(control: ControlApi) -> None:
    async with receiving() as receiver:
        target = {"kind": "webhook", "url": f"{receiver.url}/in", "secrets": [SECRET]}
        await add(control, target=target)

        answer = await control.post("/v1/subscriptions/ops/test")

    assert answer == {"delivered": True, "reason": ""}
    [received] = receiver.received
    assert "This is a test" in str(received.verified(SECRET)["data"])


async def test_a_test_that_fails_says_why(control: ControlApi) -> None:
    def refuse(_: Received) -> Reply:
        return Reply(status=401, body=b"who are you")

    async with receiving(refuse) as receiver:
        await add(control, target={"kind": "webhook", "url": receiver.url})

        answer = await control.post("/v1/subscriptions/ops/test")

    assert answer["delivered"] is False
    assert "answered 401: who are you" in answer["reason"]


async def test_undelivered_messages_are_listed_with_the_reason_and_redelivered(
    control: ControlApi,
) -> None:
    await add(control)
    numbers = [
        await queue_message(
            control.services.engine, "ops", state=DeliveryState.UNDELIVERED, error="answered 410"
        )
        for _ in range(2)
    ]

    path = "/v1/subscriptions/ops/deliveries"
    listed = (await control.get(path, state="undelivered"))["deliveries"]
    first = (await control.get(path, limit=1))["deliveries"]
    health = (await control.get("/v1/subscriptions/ops"))["health"]
    one = await control.post("/v1/subscriptions/ops/redeliver", {"numbers": numbers[:1]})
    left = (await control.get(path, state="undelivered"))["deliveries"]
    [recorded] = (await control.get("/v1/history", action="subscription_redelivered"))["history"]
    rest = await control.post("/v1/subscriptions/ops/redeliver")

    assert [each["number"] for each in listed] == numbers
    assert {each["error"] for each in listed} == {"answered 410"}
    assert listed[0]["event_type"] == "Reboot"
    assert listed[0]["given_up_at"] is not None
    assert [each["number"] for each in first] == numbers[:1]
    assert (health["undelivered"], health["pending"]) == (2, 0)
    assert (one, rest["messages"] >= 1) == ({"messages": 1}, True)
    assert recorded["cause"] == "ops: 1 message"
    assert [each["number"] for each in left] == numbers[1:]


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"name": "Ops!"}, "name", "lower-case letters"),
        ({"target": {"kind": "webhook", "url": "ftp://x"}}, "target", "http:// or https://"),
        ({"target": {"kind": "webhook", "url": "https://a:b@x/"}}, "target", "a password"),
        ({"target": {"kind": "webhook", "url": URL, "secrets": ["x"]}}, "target", "whsec_"),
        ({"target": {"kind": "webhook", "url": URL, "ca": "x"}}, "target", "PEM"),
        ({"target": {"kind": "webhook", "url": URL, "ca_file": "/etc/passwd"}}, None, "ca_file"),
        ({"target": {"kind": "pigeon", "url": URL}}, None, "pigeon"),
        ({"target": {"kind": "apprise", "url": "nothing"}}, "target", "Apprise"),
        (
            {"target": {"kind": "apprise", "url": "json://x"}, "shape": {"kind": "event-grid"}},
            "target",
            "text for people",
        ),
        ({"shape": {"kind": "template"}}, "shape", "template"),
        ({"shape": {"kind": "template", "template": "{{ a.b() }}"}}, "shape", "template"),
        ({"shape": {"every_scope": True}}, "shape", "event-grid"),
        ({"filter": {"types": ["Nap"]}}, None, "Nap"),
        ({"filter": {"vms": [""]}}, None, "length"),
        ({"colour": "red"}, None, "colour"),
    ],
)
async def test_what_makes_no_sense_is_refused_without_its_url_and_adds_nothing(
    control: ControlApi, body: dict[str, object], field: str | None, words: str
) -> None:
    status, error = await control.refused("POST", "/v1/subscriptions", {**OPS, **body})

    assert status == 400
    assert words in error["message"]
    assert "token=abc" not in error["message"]
    if field is not None:
        assert error["field"] == field
    assert await control.get("/v1/subscriptions") == {"subscriptions": []}


async def test_a_name_that_is_taken_is_refused(control: ControlApi) -> None:
    await add(control)

    status, error = await control.refused("POST", "/v1/subscriptions", OPS)

    assert (status, error["code"]) == (409, "subscription_exists")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/deliveries"),
        *(("POST", f"/{what}") for what in ("test", "pause", "resume", "redeliver", "rotate")),
    ],
)
async def test_an_unknown_one_is_not_found(control: ControlApi, method: str, path: str) -> None:
    status, error = await control.refused(method, f"/v1/subscriptions/nobody{path}")

    assert (status, error["code"]) == (404, "unknown_subscription")
    assert "'nobody'" in error["message"]
