import pytest

from tests.control.control_api import ControlApi, refusal


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8170",
        "127.0.0.1",
        "[::1]:8170",
        "[::1]",
        "192.0.2.7:80",
        "localhost",
        "LocalHost:8170",
        "forewarned.example",
        "Forewarned.Example.:8170",
    ],
)
async def test_a_host_that_this_server_goes_by_is_served(control: ControlApi, host: str) -> None:
    response = await control.http.get("/v1/health", headers={"Host": host})

    assert response.status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "[::1].evil.example",
        "x.forewarned.example",
        "127.0.0.1@evil.example",
        "",
        "[",
    ],
)
async def test_a_foreign_host_is_refused(control: ControlApi, host: str) -> None:
    status, error = refusal(await control.http.get("/v1/health", headers={"Host": host}))

    assert (status, error["code"], error["field"]) == (403, "foreign_host", "Host")


async def test_two_hosts_are_refused(control: ControlApi) -> None:
    headers = [("Host", "localhost"), ("Host", "evil.example")]

    status, error = refusal(await control.http.get("/v1/health", headers=headers))

    assert (status, error["code"]) == (403, "foreign_host")


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8170", "HTTP://127.0.0.1:8170"])
async def test_pages_of_our_own_may_ask(control: ControlApi, origin: str) -> None:
    response = await control.http.post("/v1/hosts/rack1/fail", headers={"Origin": origin})

    assert response.status_code == 201


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://127.0.0.1:8170",
        "http://127.0.0.1:3000",
        "http://127.0.0.1",
        "http://localhost:8170",
        "null",
        "",
    ],
)
async def test_pages_of_others_change_and_learn_nothing(control: ControlApi, origin: str) -> None:
    headers = {"Origin": origin}

    refusals = [
        refusal(await control.http.post("/v1/hosts/rack1/fail", headers=headers)),
        refusal(await control.http.get("/v1/events", headers=headers)),
        refusal(await control.http.options("/v1/events", headers=headers)),
    ]

    assert {(status, e["code"], e["field"]) for status, e in refusals} == {
        (403, "foreign_origin", "Origin")
    }
    assert await control.get("/v1/events", status="all") == {"events": []}


async def test_no_answer_invites_pages_of_others(control: ControlApi) -> None:
    response = await control.http.get("/v1/events")

    assert not [name for name in response.headers if name.lower().startswith("access-control-")]
