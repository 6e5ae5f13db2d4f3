"""How a request finds its operation, and what it is told before any operation hears of it."""

from collections.abc import AsyncIterator
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.control.arm import requests
from forewarned.control.arm.answers import ArmAnswer, no_content, ok
from forewarned.control.arm.app import OPERATIONS
from forewarned.control.arm.errors import ArmError
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import (
    Content,
    Operation,
    Router,
    delete,
    head,
    open_read,
    patch,
    post,
    put,
    read,
    telling,
)
from forewarned.security.identities import MissingTokenError, Role
from tests.builders import OPERATOR
from tests.control.arm.asking import PEER, ROOT, SUBSCRIPTION, Asking, asking, refusal

GROUP: Final = "/subscriptions/{subscription}/resourceGroups/{group}"
SETS: Final = f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets"
ONE: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/g"


def told(asked: Asked) -> ArmAnswer:
    return ok(
        {
            "path": asked.path,
            "query": asked.query,
            "body": asked.body,
            "by": asked.by.name,
            "from": asked.by.address,
            "root": asked.root,
            "url": asked.url,
            "version": asked.api_version,
        }
    )


def echo(_: object, asked: Asked) -> ArmAnswer:
    return told(asked)


def nothing(_: object, __: Asked) -> ArmAnswer:
    return no_content()


def fixed(_: object, __: Asked) -> ArmAnswer:
    return ok("the fixed part")


TABLE: Final = (
    read(GROUP, echo),
    head(GROUP, nothing),
    put(GROUP, echo),
    patch(GROUP, echo),
    delete(GROUP, echo),
    read(f"{SETS}/{{name}}", echo),
    read(f"{SETS}/special", fixed),
    post(f"{SETS}/{{name}}/restart", echo, needs=Role.MAINTAINER),
    open_read("/metadata/endpoints", told),
    Operation(
        method="POST",
        path="/{tenant}/oauth2/token",
        answer=telling(told),
        needs=None,
        content=Content.FORM,
        is_versioned=False,
    ),
)


@pytest.fixture
async def arm() -> AsyncIterator[Asking]:
    async with asking(TABLE) as asked:
        yield asked


# --- paths ---------------------------------------------------------------------------------------


async def test_paths_are_taken_in_any_letter_case_and_values_keep_theirs(arm: Asking) -> None:
    path = f"/SUBSCRIPTIONS/{SUBSCRIPTION}/resourcegroups/My-Group"

    answer = await arm.good("GET", path)

    assert answer["path"] == {"subscription": SUBSCRIPTION, "group": "My-Group"}
    assert answer["url"] == path


async def test_a_slash_at_the_end_is_as_good_as_none(arm: Asking) -> None:
    assert (await arm.good("GET", f"{ONE}/"))["path"]["group"] == "g"


@pytest.mark.parametrize("word", ["providers", "PROVIDERS"])
def test_the_path_of_a_parent_may_be_empty_as_az_has_it(word: str) -> None:
    raw = f"/subscriptions/s/resourcegroups/g/{word}/Microsoft.Compute//availabilitySets/a"

    assert requests.segments(raw.encode())[5:] == ("Microsoft.Compute", "availabilitySets", "a")


async def test_values_are_decoded_once(arm: Asking) -> None:
    answer = await arm.good("GET", f"/subscriptions/{SUBSCRIPTION}/resourceGroups/caf%C3%A9%20(1)")

    assert answer["path"]["group"] == "café (1)"


async def test_a_fixed_part_goes_before_a_value(arm: Asking) -> None:
    sets = f"{ONE}/providers/microsoft.compute/virtualmachinescalesets"

    assert await arm.good("GET", f"{sets}/SPECIAL") == "the fixed part"
    assert (await arm.good("GET", f"{sets}/other"))["path"]["name"] == "other"


@pytest.mark.parametrize(
    "raw",
    [
        b"/a//b",
        b"//a",
        b"/a/./b",
        b"/a/../b",
        b"/a/%2e%2E/b",
        b"/a/%2e",
        b"/a%2fb",
        b"/a%2Fb/c",
        b"/a%5cb",
        b"/a\\b",
        b"/a%00b",
        b"/a%0d%0ab",
        b"/a%7f",
        b"/a%e2%80%a8b",
        b"/a%zz",
        b"/a%",
        b"/a%4",
        b"/a%252fb",
        b"/a%3fb",
        b"/a%23b",
        b"/a%3cb",
        b"/a%ff",
        b"/a%c0%afb",
        "/café".encode(),
        b"/a b",
        b"/a//",
        b"/providers//a",
        b"/providers/a//",
        b"/providers/a///b",
        b"/providers/a/b//c",
        b"/providers/a//../b",
    ],
)
def test_tricks_with_paths_are_refused(raw: bytes) -> None:
    with pytest.raises(ArmError) as refused:
        requests.segments(raw)

    assert (refused.value.status, refused.value.code) == (400, "InvalidRequestUri")


@given(st.binary(max_size=40))
def test_whatever_the_path_it_is_read_whole_or_refused(raw: bytes) -> None:
    try:
        parts = requests.segments(b"/" + raw)
    except ArmError:
        return

    assert all(part and part not in {".", ".."} and "/" not in part for part in parts)
    assert all(part.isprintable() for part in parts)


async def test_what_is_not_there_is_told_with_what_is(arm: Asking) -> None:
    status, code, message = await arm.refused(
        "GET", f"/subscriptions/{SUBSCRIPTION}/pizzas/margherita"
    )

    assert (status, code) == (404, "InvalidResourceType")
    assert f"/subscriptions/{SUBSCRIPTION}/pizzas/margherita" in message
    assert "virtual machines, scale sets" in message


async def test_a_wrong_method_is_told_the_right_ones(arm: Asking) -> None:
    response = await arm.ask("POST", ONE)

    assert refusal(response)[:2] == (405, "MethodNotAllowed")
    assert response.headers["Allow"] == "DELETE, GET, HEAD, PATCH, PUT"


async def test_head_is_for_paths_whose_table_says_so(arm: Asking) -> None:
    there = await arm.ask("HEAD", ONE)
    elsewhere = await arm.ask("HEAD", "/metadata/endpoints")

    assert (there.status_code, there.content) == (204, b"")
    assert elsewhere.status_code == 405


def test_two_operations_can_not_be_at_one_place() -> None:
    with pytest.raises(ValueError, match=r"two operations are at GET /A/\{y\}"):
        Router([read("/a/{x}", echo), read("/A/{y}", echo)])


# --- the real table ------------------------------------------------------------------------------


def test_every_operation_is_found_by_its_own_path() -> None:
    router = Router(OPERATIONS)

    for each in OPERATIONS:
        filled = tuple(part.strip("{}") for part in each.parts)
        assert router.find(each.method, filled)[0] is each


ACTIONS: Final = {
    "acknowledge": Role.APPROVER,
    "scheduledevents": Role.APPROVER,
    "performmaintenance": Role.MAINTAINER,
    "redeploy": Role.MAINTAINER,
    "restart": Role.MAINTAINER,
    "simulateeviction": Role.MAINTAINER,
}
"""What those may do who may not change what there is."""


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_s12_each_operation_needs_the_least_role_that_may_ask_for_it(each: Operation) -> None:
    if each.needs is None:
        # Nobody can have signed in who is still to find out where.
        assert not each.path.startswith("/subscriptions")
    elif each.method in {"GET", "HEAD"}:
        assert each.needs is Role.READER
    else:
        assert each.needs is ACTIONS.get(each.parts[-1].lower(), Role.ADMIN)


# --- api-version and query -----------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "?api-version=", "?api_version=2020-01-01"])
async def test_an_api_version_must_be_given(arm: Asking, query: str) -> None:
    response = await arm.http.get(f"{ONE}{query}")

    assert refusal(response)[:2] == (400, "MissingApiVersionParameter")


@pytest.mark.parametrize(
    "version", ["latest", "2020-13-01", "2020-1-1", "2020-01-01-beta", "x" * 99]
)
async def test_an_api_version_must_be_a_day(arm: Asking, version: str) -> None:
    path = f"{ONE}?api-version={version}"

    assert (await arm.refused("GET", path))[:2] == (400, "InvalidApiVersionParameter")


@pytest.mark.parametrize("version", ["1999-01-01", "2026-04-01", "2022-01-01-preview"])
async def test_any_day_will_do(arm: Asking, version: str) -> None:
    path = f"{ONE}?Api-Version={version}"

    assert (await arm.good("GET", path))["version"] == version


async def test_where_clients_are_told_of_nothing_yet_no_version_is_needed(arm: Asking) -> None:
    response = await arm.http.get("/metadata/endpoints")

    assert response.json()["version"] == ""


async def test_the_query_is_by_names_in_lower_case(arm: Asking) -> None:
    path = f"{ONE}?api-version=2020-01-01&$Expand=instanceView&x="

    answer = await arm.good("GET", path)

    assert answer["query"] == {"api-version": "2020-01-01", "$expand": "instanceView", "x": ""}


@pytest.mark.parametrize(
    "query", ["$top=1&$TOP=2", "x=%ff", "x=é", "&".join(f"p{n}=1" for n in range(60))]
)
async def test_a_query_that_says_two_things_or_nothing_is_refused(query: str) -> None:
    with pytest.raises(ArmError, match="query"):
        requests.query(query.encode())


# --- bodies --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"[]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{", "not JSON"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "deeper than 64"),
        (b'{"a":' * 100_000, "deeper than 64"),
        (b'{"a":' + b"[" * 100_000, "deeper than 64"),
        (b"", "it is empty"),
        (b"  ", "it is empty"),
    ],
)
async def test_a_body_must_be_an_object_of_modest_depth(arm: Asking, body: bytes, why: str) -> None:
    status, code, message = await arm.refused("PUT", ONE, body)

    assert (status, code) == (400, "InvalidRequestContent")
    assert why in message


async def test_a_body_as_deep_as_allowed_is_taken(arm: Asking) -> None:
    body = b'{"a":' * 63 + b"1" + b"}" * 63

    assert await arm.good("PUT", ONE, body)


async def test_a_post_may_come_without_a_body(arm: Asking) -> None:
    sets = f"{ONE}/providers/Microsoft.Compute/virtualMachineScaleSets"

    empty = await arm.good("POST", f"{sets}/a/restart")
    given = await arm.good("POST", f"{sets}/a/restart", {"instanceIds": ["*"]})

    assert empty["body"] is None
    assert given["body"] == {"instanceIds": ["*"]}


async def test_a_body_of_more_than_4_mib_is_refused_by_what_is_sent_or_what_is_said(
    arm: Asking,
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b" " * (1 << 20)

    path = f"{ONE}?api-version=2020-01-01"
    said = await arm.http.put(path, content=b"{}", headers={"Content-Length": str(5 << 20)})
    sent = await arm.http.put(path, content=chunks())

    assert refusal(said)[:2] == refusal(sent)[:2] == (413, "RequestContentTooLarge")


@pytest.mark.parametrize("type_", ["text/plain", "application/x-www-form-urlencoded", "json"])
async def test_a_body_of_another_type_is_refused(arm: Asking, type_: str) -> None:
    response = await arm.http.put(
        f"{ONE}?api-version=2020-01-01",
        content=b"{}",
        headers={"Content-Type": type_},
    )

    assert refusal(response)[:2] == (415, "UnsupportedMediaType")


async def test_a_form_has_a_text_for_each_field(arm: Asking) -> None:
    good = await arm.http.post("/adfs/oauth2/token", data={"scope": "a b", "secret": "ü&"})
    double = await arm.http.post(
        "/adfs/oauth2/token",
        content=b"a=1&a=2",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )

    assert good.json()["body"] == {"scope": "a b", "secret": "ü&"}
    assert refusal(double)[:2] == (400, "InvalidRequestContent")


# --- who asks, and by which name -----------------------------------------------------------------


async def test_whoever_asks_is_let_in_by_role_or_not_heard(arm: Asking) -> None:
    await arm.ask("GET", ONE, Authorization="Bearer x")
    await arm.ask("DELETE", ONE)
    await arm.http.get("/metadata/endpoints")

    assert arm.door.asked == [("Bearer x", PEER, Role.READER), (None, PEER, Role.ADMIN)]


async def test_who_is_not_let_in_is_told_so_before_anything_else(arm: Asking) -> None:
    arm.door.refusal = MissingTokenError()

    response = await arm.http.put(ONE, content=b"[")

    assert refusal(response)[:2] == (401, "AuthenticationFailed")
    assert response.headers["WWW-Authenticate"] == "Bearer"


async def test_links_go_by_the_name_that_the_caller_uses(arm: Asking) -> None:
    answer = await arm.http.get("/metadata/endpoints", headers={"Host": "arm.example:9999"})

    assert answer.json()["root"] == "https://arm.example:9999"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, "ForeignHost"),
        ({"Host": "localhost/x"}, "ForeignHost"),
        ({"Origin": "https://evil.example"}, "ForeignOrigin"),
    ],
)
async def test_other_sites_are_refused_in_arms_shape(
    arm: Asking, headers: dict[str, str], code: str
) -> None:
    response = await arm.http.get("/metadata/endpoints", headers=headers)

    assert refusal(response)[:2] == (403, code)
    assert response.headers["x-ms-request-id"]


@pytest.mark.parametrize("path", ["/metadata/endpoints", "/nothing/here"])
async def test_every_answer_has_an_id_and_the_one_the_client_gave(arm: Asking, path: str) -> None:
    plain = await arm.http.get(path)
    named = await arm.http.get(path, headers={"x-ms-client-request-id": "mine"})
    book = await arm.http.get(path, headers={"x-ms-client-request-id": "x" * 200})

    assert plain.headers["x-ms-request-id"] != named.headers["x-ms-request-id"]
    assert plain.headers["x-ms-correlation-request-id"] == plain.headers["x-ms-request-id"]
    assert named.headers["x-ms-correlation-request-id"] == "mine"
    assert named.headers["x-ms-client-request-id"] == "mine"
    assert "x-ms-client-request-id" not in book.headers
    assert plain.headers["Cache-Control"] == "no-store"


async def test_links_to_operations_are_whole(arm: Asking) -> None:
    asked = Asked(
        path={"subscription": SUBSCRIPTION},
        query={},
        body=None,
        by=(await arm.services.access.admit(authorization=None, address="", needs=Role.READER)),
        root=ROOT,
        url="/",
        api_version="2024-11-01",
        context=arm.services.context(OPERATOR, "one"),
    )

    assert asked.operation_url("7") == (
        f"{ROOT}/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/local"
        "/operations/7?api-version=2024-11-01"
    )
