"""Every error that the endpoint documents, and those of our own: status, headers, body."""

import json

import pytest

from forewarned.metadata.errors import RULES_STATUS, STATUS
from forewarned.metadata.options import Options
from forewarned.metadata.refusals import Reason
from tests.metadata.fakes import EVENTS, Client, FakeService, get, post

EVENT_PATH = "/metadata/scheduledevents"
INSTANCE = "/metadata/instance?api-version=2021-12-13"
NO_HEADER = b'{"error":"Bad request: . Required metadata header not specified"}'
WRONG_VERSION = (
    b'{"error":"Bad request. api-version is invalid or was not specified in the request.'
    b' For more information refer to aka.ms/azureimds","newest-versions":[%s]}'
)
WRONG_EVENT_VERSION = WRONG_VERSION % b'"2020-07-01","2019-08-01","2019-04-01"'
WRONG_INSTANCE_VERSION = WRONG_VERSION % b'"2025-04-07","2024-07-17","2024-03-15"'


def test_every_reason_has_a_status() -> None:
    assert set(STATUS) == set(Reason)
    assert all(400 <= status < 600 for status in (*STATUS.values(), *RULES_STATUS.values()))


@pytest.mark.parametrize("version", ["2017-08-01", "2019-01-01", "2020-07-01", "", "2025-04-07"])
@pytest.mark.parametrize("value", ["", "false", "1", "true, true", "yes"])
async def test_the_metadata_header_is_needed(client: Client, version: str, value: str) -> None:
    target = f"{EVENT_PATH}?api-version={version}"

    read = await client.get(target, Metadata=value)
    approved = await client.post("{}", target, Metadata=value)

    assert (read.status, read.body) == (400, NO_HEADER)
    assert (approved.status, approved.body) == (400, NO_HEADER)
    assert read.headers["Content-Type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize("target", [INSTANCE, "/metadata/versions"])
async def test_the_metadata_header_is_needed_elsewhere_too(client: Client, target: str) -> None:
    answer = await client.get(target, Metadata="")

    assert (answer.status, answer.body) == (400, NO_HEADER)


async def test_the_metadata_header_is_not_enforced_in_the_first_version(client: Client) -> None:
    answer = await client.get(f"{EVENT_PATH}?api-version=2017-03-01", Metadata="")

    assert answer.status == 200


@pytest.mark.parametrize("value", ["true", "True", "TRUE", " true \t"])
async def test_true_is_true_in_any_letter_case(client: Client, value: str) -> None:
    answer = await client.get(Metadata=value)

    assert answer.status == 200


@pytest.mark.parametrize(
    "target",
    [
        EVENT_PATH,
        f"{EVENT_PATH}?",
        f"{EVENT_PATH}?api-version",
        f"{EVENT_PATH}?api-version=",
        f"{EVENT_PATH}?api-version=latest",
        f"{EVENT_PATH}?api-version=2025-04-07",
        f"{EVENT_PATH}?api-version=2017-04-02",
        f"{EVENT_PATH}?api-version=2020-07-01x",
        f"{EVENT_PATH}?api-version=2020%2D07-01",
        f"{EVENT_PATH}?version=2020-07-01",
        "/metadata/latest/scheduledevents",
        "/metadata/2017-03-01/scheduledevents",
        "/metadata/latest/scheduledevents?api-version=2020-07-01",
    ],
)
async def test_a_missing_or_unknown_version_is_told_the_newest(client: Client, target: str) -> None:
    answer = await client.get(target)

    assert (answer.status, answer.body) == (400, WRONG_EVENT_VERSION)


@pytest.mark.parametrize(
    "target",
    [
        "/metadata/instance",
        "/metadata/instance?api-version=2020-07-01",
        "/metadata/instance?api-version=2017-03-01",
        "/metadata/instance/compute/name?format=text",
    ],
)
async def test_the_instance_document_has_versions_of_its_own(client: Client, target: str) -> None:
    answer = await client.get(target)

    assert (answer.status, answer.body) == (400, WRONG_INSTANCE_VERSION)


@pytest.mark.parametrize(
    "query",
    [
        "api-version=2020-07-01&api-version=2020-07-01",
        "api-version=2020-07-01&API-Version=2019-08-01",
        "api-version=2020-07-01&x=1&x=2",
    ],
)
async def test_a_query_parameter_given_twice_is_refused(client: Client, query: str) -> None:
    answer = await client.get(f"{EVENT_PATH}?{query}")

    assert answer.status == 400
    assert "more than once" in json.loads(answer.body)["error"]


async def test_unknown_query_parameters_are_ignored(client: Client) -> None:
    answer = await client.get(f"{EVENT_PATH}?x=1&api-version=2020-07-01&&y")

    assert answer.status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/metadata/scheduledevents",
        "/metadata/scheduledevents/",
        "/Metadata/ScheduledEvents",
        "/METADATA/SCHEDULEDEVENTS/",
    ],
)
async def test_the_path_has_any_case_and_may_end_in_a_slash(client: Client, path: str) -> None:
    assert (await client.get(f"{path}?api-version=2020-07-01")).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metadata",
        "/metadata/",
        "/metadata/scheduledevents//",
        "//metadata/scheduledevents",
        "/metadata//scheduledevents",
        "/metadata/scheduledevents/x",
        "/metadata/scheduledevents;x",
        "/metadata%2fscheduledevents",
        "/metadata/%73cheduledevents",
        "/metadata/x/../scheduledevents",
        "/metadata/./scheduledevents",
        "/metadata/identity/oauth2",
        "/vm/vm1/metadata/scheduledevents",
    ],
)
async def test_anything_else_is_404(client: Client, path: str) -> None:
    answer = await client.get(f"{path}?api-version=2020-07-01")

    assert answer.status == 404
    assert answer.body == b'{"error":"Not found. There is nothing at this path."}'


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize(
    ("target", "allowed"), [(EVENTS, "GET, POST"), (INSTANCE, "GET"), ("/metadata/versions", "GET")]
)
async def test_other_methods_are_405_and_told_which_to_use(
    client: Client, method: str, target: str, allowed: str
) -> None:
    answer = await client.request(get(target, method))

    assert answer.status == 405
    assert answer.headers["Allow"] == ("GET, POST" if method == "TRACE" else allowed)
    assert method in json.loads(answer.body)["error"]
    assert (await client.get()).status == 200


@pytest.mark.parametrize("target", [INSTANCE, "/metadata/versions"])
async def test_only_events_are_posted_to(client: Client, target: str) -> None:
    answer = await client.post("{}", target)

    assert (answer.status, answer.headers["Allow"]) == (405, "GET")


async def test_an_answer_to_head_has_no_body(client: Client) -> None:
    await client.send(get(method="HEAD"))
    answer = await client.receive(to_head=True)

    assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
    assert (await client.get()).status == 200


async def test_forwarded_requests_are_refused(client: Client) -> None:
    answer = await client.get(X_Forwarded_For="10.0.0.4")

    assert answer.status == 400
    assert "x-forwarded-for" in json.loads(answer.body)["error"]


@pytest.mark.parametrize("header", ["Forwarded", "Via", "X-Real-IP"])
async def test_other_signs_of_a_proxy_are_refused_where_asked_for(
    service: FakeService, header: str
) -> None:
    request = get(**{header: "10.0.0.4"})

    async with service.serving() as site:
        assert (await site.request(request)).status == 200
    async with service.serving(Options(rate_limit=None, strict_forwarding=True)) as site:
        assert (await site.request(request)).status == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-User": "?1"},
    ],
)
async def test_a_page_in_a_browser_is_refused(client: Client, headers: dict[str, str]) -> None:
    answer = await client.get(**headers)

    assert answer.status == 403
    assert "Access-Control-Allow-Origin" not in answer.headers


async def test_node_is_no_browser(client: Client) -> None:
    answer = await client.get(Accept="*/*", Accept_Language="*", Sec_Fetch_Mode="cors")

    assert answer.status == 200


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.169.254:80",
        "127.0.0.1:8169",
        "localhost",
        "LocalHost:8169",
        "[::1]:8169",
        "metadata.internal:80",
    ],
)
async def test_known_hosts_are_served(service: FakeService, host: str) -> None:
    options = Options(rate_limit=None, hosts=frozenset({"metadata.internal"}))

    async with service.serving(options) as site:
        assert (await site.request(get(Host=host))).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1:80:80",
        "127.0.0.1@evil.example",
        "127.1",
        "0x7f.0.0.1",
        "[evil]",
        "[::1",
        "::1",
        "a, localhost",
        "",
    ],
)
async def test_a_name_that_anybody_can_point_here_is_refused(client: Client, host: str) -> None:
    answer = await client.get(Host=host)

    assert answer.status == 400
    assert "Host header" in json.loads(answer.body)["error"]
    assert await client.rest() == b""


async def test_two_hosts_are_refused(client: Client) -> None:
    answer = await client.request(get().replace(b"\r\n\r\n", b"\r\nHost: 169.254.169.254\r\n\r\n"))

    assert answer.status == 400


async def test_the_form_of_a_request_is_judged_before_what_it_asks_for(client: Client) -> None:
    """Guards, path, method, query, header, version: each hides what comes after it."""
    order = [
        (get("/x?a=1&a=1", "PUT", X_Forwarded_For="x", Metadata=""), "Forwarded requests"),
        (get("/x?a=1&a=1", "PUT", Metadata=""), "nothing at this path"),
        (get(f"{EVENT_PATH}?a=1&a=1", "PUT", Metadata=""), "not supported"),
        (get(f"{EVENT_PATH}?a=1&a=1", Metadata=""), "more than once"),
        (get(f"{EVENT_PATH}?a=1", Metadata=""), "metadata header"),
        (get(f"{EVENT_PATH}?a=1"), "api-version"),
    ]

    for request, words in order:
        answer = await client.request(request)
        assert words in json.loads(answer.body)["error"]


async def test_a_refused_approval_leaves_the_connection_usable(client: Client) -> None:
    refused = await client.request(post('{"StartRequests":[]}', Metadata=""))

    assert refused.status == 400
    assert "Connection" not in refused.headers
    assert (await client.get()).status == 200
