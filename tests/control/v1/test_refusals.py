"""Whatever goes wrong, the answer has one shape, with the field at fault."""

from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest

from forewarned.control.http.errors import STATUS, RequestError
from forewarned.control.v1 import errors
from forewarned.control.v1.errors import ACCESS_CODES, code
from forewarned.core.errors import Category, NoResourcesError, RefusalError, UnknownEventError
from forewarned.core.rules import Rules
from forewarned.security.identities import AccessError
from tests.builders import A
from tests.control.control_api import ControlApi, control_api, refusal
from tests.control.error_types import errors_of


def test_every_category_has_a_status_of_its_own() -> None:
    assert set(STATUS) == set(Category)
    assert len(set(STATUS.values())) == len(STATUS)


def test_every_refusal_has_a_category() -> None:
    """A new one needs no row in a table, but must say what sort of refusal it is."""
    kinds = {*errors_of(RefusalError), *errors_of(RequestError), *errors_of(AccessError)}

    assert {kind for kind in kinds if not hasattr(kind, "category")} == set()


def test_callers_who_are_not_admitted_get_a_status_of_their_own() -> None:
    """S12."""
    kinds = set(errors_of(AccessError))

    assert kinds == set(ACCESS_CODES)
    assert {STATUS[kind.category] for kind in kinds} == {401, 403}


def test_refusals_that_say_a_thing_is_unknown_are_404_and_no_others_are() -> None:
    # An instance id is a value in a body, and so is a type of resource: neither is an address.
    values = {"UnknownInstanceError", "UnknownKindError"}
    unknown = {
        kind
        for kind in errors_of(RefusalError)
        if kind.__name__.startswith("Unknown") and kind.__name__ not in values
    }

    not_found = {kind for kind in errors_of(RefusalError) if kind.category is Category.NOT_FOUND}
    assert not_found == unknown


@pytest.mark.parametrize(
    ("kind", "name"),
    [(UnknownEventError, "unknown_event"), (NoResourcesError, "no_resources")],
)
def test_a_code_is_the_name_of_the_refusal(kind: type[Exception], name: str) -> None:
    assert code(kind) == name


async def test_a_refusal_by_the_rules_names_its_field(control: ControlApi) -> None:
    assert await control.refused("GET", f"/v1/events/{A}") == (
        404,
        {"code": "unknown_event", "message": f"event {A} was not found", "field": "event_id"},
    )


@pytest.mark.parametrize(
    ("body", "status", "name", "field"),
    [
        ({"type": "Reboot", "resources": ["nobody"]}, 404, "unknown_resource", "resources"),
        ({"type": "Reboot", "resources": []}, 400, "no_resources", "resources"),
        ({"type": "Reboot", "resources": ["web", "WEB"]}, 409, "duplicate_resource", "resources"),
        ({"type": "Preempt", "resources": ["web"]}, 400, "not_spot", "resources"),
        ({"type": "Terminate", "resources": ["cheap"]}, 400, "spot_terminate", "resources"),
        (
            {"type": "Reboot", "resources": ["db-0", "db-1"]},
            400,
            "several_update_domains",
            "resources",
        ),
        (
            {"type": "Reboot", "resources": ["web"], "notice": "1m"},
            400,
            "notice_too_short",
            "notice",
        ),
        (
            {"type": "Reboot", "resources": ["web"], "notice": "366d"},
            400,
            "notice_too_long",
            "notice",
        ),
    ],
)
async def test_events_that_the_rules_turn_down(
    control: ControlApi, body: object, status: int, name: str, field: str
) -> None:
    found, error = await control.refused("POST", "/v1/events", body)

    assert (found, error["code"], error["field"]) == (status, name, field)
    assert await control.get("/v1/events") == {"events": []}


async def test_conflicts_with_what_an_event_has_come_to(control: ControlApi) -> None:
    await control.switch_on("web")
    scheduled = f"/v1/events/{(await control.schedule('Reboot', 'web'))['event_id']}"
    early = await control.refused("POST", f"{scheduled}/complete")
    await control.post(f"{scheduled}/approve")
    late = await control.refused("POST", f"{scheduled}/cancel")
    await control.post(f"{scheduled}/complete")
    over = await control.refused("POST", f"{scheduled}/complete")

    found = [(status, error["code"], error["field"]) for status, error in (early, late, over)]
    assert found == [
        (409, "not_started", "event_id"),
        (409, "already_started", "event_id"),
        (409, "closed_event", "event_id"),
    ]


async def test_a_set_under_maintenance_is_a_conflict(control: ControlApi) -> None:
    await control.switch_on("db-0")
    await control.post("/v1/scopes/avset/db/maintain", {"type": "Freeze"})

    status, error = await control.refused(
        "POST", "/v1/scopes/avset/db/maintain", {"type": "Reboot"}
    )

    assert (status, error["code"], error["field"]) == (409, "maintenance_conflict", "scope")


async def test_only_some_types_are_maintenance(control: ControlApi) -> None:
    status, error = await control.refused("POST", "/v1/hosts/rack1/maintain", {"type": "Terminate"})

    assert (status, error["code"], error["field"]) == (400, "not_maintainable", "type")


async def test_a_limit_on_user_events_and_on_notice_is_kept() -> None:
    async with control_api(rules=Rules(max_user_events=1)) as control:
        await control.switch_on("web")
        await control.schedule("Reboot", "web")
        asked = {"type": "Reboot", "resources": ["web"]}
        many = await control.refused("POST", "/v1/events", asked)
        short = await control.refused(
            "POST", "/v1/events", {**asked, "type": "Freeze", "notice": "1s", "short_notice": True}
        )

    assert (many[0], many[1]["code"], many[1]["field"]) == (409, "too_many_user_events", "source")
    assert (short[0], short[1]["code"]) == (400, "short_notice_forbidden")


@pytest.mark.parametrize("path", ["/v1/events/42", "/v1/events/42/explain"])
async def test_what_is_no_event_id_is_refused(control: ControlApi, path: str) -> None:
    status, error = await control.refused("GET", path)

    assert (status, error["code"], error["field"]) == (400, "invalid_id", "event_id")


async def test_a_parameter_that_is_no_event_id_is_named_as_it_was_given(
    control: ControlApi,
) -> None:
    status, error = await control.refused("GET", "/v1/history?event=42")

    assert (status, error["code"], error["field"]) == (400, "invalid_id", "event")


@pytest.mark.parametrize("every", ["1e300", "1e17", "0"])
async def test_a_source_that_says_to_be_listed_never_again_is_refused(
    control: ControlApi, every: str
) -> None:
    body = f'{{"holder": "h", "every": {every}, "vms": []}}'.encode()

    status, error = refusal(await control.http.post("/v1/sources/rack1/listing", content=body))

    assert (status, error["code"], error["field"]) == (400, "bad_request", "every")


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        (b'{"type": "Reboot", "resources": ["web"], "when": "now"}', "when", "unknown field"),
        (b'{"resources": ["web"]}', "type", "missing required field"),
        (b"", "type", "missing required field"),
        (b'{"type": "Reboot", "resources": ["web", 7]}', "resources[1]", "expected `str`"),
        (b'{"type": "Reboot", "resources": "web"}', "resources", "expected `array`"),
        (
            b'{"type": "Sleep", "resources": ["web"]}',
            "type",
            "'Sleep' is not one of Freeze, Reboot,",
        ),
        (b'{"type": "Reboot", "resources": ["web"], "source": "Me"}', "source", "Platform, User"),
        (b'{"type": "Reboot", "resources": ["web"], "notice": "soon"}', "notice", "'soon' is not"),
        (b'{"type": "Reboot", "resources": ["web"], "notice": 15}', "notice", "like 14m59s"),
        (b'{"type": "Reboot", "resources": ["web"], "duration": "-9s"}', "duration", "'-9s' is"),
        (b'{"type": "Reboot", "resources": ["web"], "notice": "99999d"}', "notice", "3660 days"),
        (b"[]", None, "expected `object`"),
        (b"null", None, "expected `object`"),
        (b'{"type"', None, "not JSON"),
        (b"type=Reboot", None, "not JSON"),
        (b"\xff\xfe", None, "not JSON"),
        (b'{"type": "Reboot", "resources": ["\xff"]}', None, "not JSON"),
        (b'{"type": "Reboot", "resources": ["\\ud800"]}', None, "not JSON"),
        (b'{"type": "Reboot", "resources": ' + b"[" * 100_000, "resources[0]", "expected `str`"),
    ],
)
async def test_a_body_that_does_not_fit_is_refused_with_the_path_of_the_field(
    control: ControlApi, body: bytes, field: str | None, says: str
) -> None:
    status, error = refusal(await control.http.post("/v1/events", content=body))

    assert (status, error["code"], error["field"]) == (400, "bad_request", field)
    assert says in error["message"]


async def test_a_fleet_that_is_nested_without_end_is_refused(control: ControlApi) -> None:
    status, error = await control.refused("PUT", "/v1/fleet", b'{"vms":' + b"[" * 100_000)

    assert (status, error["code"]) == (400, "bad_request")


@pytest.mark.parametrize(
    "path", ["/v1/clock/pause", f"/v1/events/{A}/approve", f"/v1/events/{A}/complete"]
)
async def test_a_body_where_none_is_wanted_may_be_empty_only(
    control: ControlApi, path: str
) -> None:
    status, error = await control.refused("POST", path, {"hard": True})

    assert (status, error["code"], error["field"]) == (400, "bad_request", "hard")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/events?limit=0", "limit"),
        ("/v1/events?limit=10001", "limit"),
        ("/v1/events?limit=few", "limit"),
        ("/v1/events?vm=", "vm"),
        ("/v1/events?status=done", "status"),
        ("/v1/events?type=Sleep", "type"),
        ("/v1/events?states=open", "states"),
        ("/v1/events?vm=web&vm=report", "vm"),
        ("/v1/history?before=0", "before"),
        (f"/v1/history?before={1 << 63}", "before"),
        ("/v1/history?limit=-1", "limit"),
        ("/v1/health?verbose=1", "verbose"),
        ("/v1/changes?since=1", "since"),
        ("/v1/clock?x=y", "x"),
    ],
)
async def test_query_parameters_are_checked_like_bodies(
    control: ControlApi, path: str, field: str
) -> None:
    status, error = await control.refused("GET", path)

    assert (status, error["code"], error["field"]) == (400, "bad_request", field)


async def test_what_a_parameter_may_be_is_told(control: ControlApi) -> None:
    _, error = await control.refused("GET", "/v1/events?status=done")

    assert "is not one of open, all, Scheduled" in error["message"]


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/event", "/v1/clock/", "/v1/vms/a/b", "/v2/events"]
)
async def test_an_unknown_route_is_not_found(control: ControlApi, path: str) -> None:
    status, error = await control.refused("GET", path)

    assert (status, error["code"], error["field"]) == (404, "not_found", None)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/fleet", "GET, HEAD, PUT"),
        ("PATCH", "/v1/events", "GET, HEAD, POST"),
        ("GET", f"/v1/events/{A}/approve", "POST"),
        ("POST", "/v1/scopes/vm/web", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(
    control: ControlApi, method: str, path: str, allowed: str
) -> None:
    response = await control.http.request(method, path)

    status, error = refusal(response)
    assert (status, error["code"]) == (405, "method_not_allowed")
    assert response.headers["Allow"] == allowed


async def test_a_store_that_is_unavailable_asks_to_come_again(control: ControlApi) -> None:
    control.store.is_down = True

    for method, path in (("GET", "/v1/fleet"), ("POST", "/v1/hosts/rack1/fail")):
        response = await control.http.request(method, path)

        status, error = refusal(response)
        assert (status, error["code"], error["message"]) == (
            503,
            "store_unavailable",
            "the disk is full",
        )
        assert response.headers["Retry-After"] == "1"


async def test_a_fault_of_ours_has_the_same_shape_and_tells_nothing(
    control: ControlApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(control.store, "_reader")

    status, error = await control.refused("GET", "/v1/fleet")

    assert (status, error["code"]) == (500, "internal")
    assert "_reader" not in error["message"]


async def test_a_body_that_is_too_large_is_refused_by_its_length(control: ControlApi) -> None:
    status, error = await control.refused("POST", "/v1/events", b" " * ((1 << 20) + 1))

    assert (status, error["code"]) == (413, "body_too_large")


async def test_a_body_without_a_length_is_refused_once_it_is_too_large(control: ControlApi) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b" " * (1 << 18)

    status, error = refusal(await control.http.post("/v1/events", content=endless()))

    assert (status, error["code"]) == (413, "body_too_large")
    assert sent == 5


async def test_a_caller_who_hangs_up_while_asking_is_no_fault_of_ours(control: ControlApi) -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/events",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    await control.app(scope, receive, send)

    assert sent[0]["status"] == 400
    assert await control.get("/v1/events") == {"events": []}


def test_the_codes_differ() -> None:
    codes = [errors.code(kind) for kind in errors_of(RefusalError)]

    assert len(codes) == len(set(codes))
