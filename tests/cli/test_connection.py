"""The way to the server where there is none, or another one than expected."""

import socket

import httpx2
import msgspec
import pytest

from forewarned.cli import connection
from forewarned.cli.connection import Answer, Control, normal_address
from forewarned.cli.failures import (
    CommandError,
    RefusedError,
    ServerFailedError,
    UnreachableError,
    UsageError,
)
from forewarned.control.v1.wire import Clock


def server(status: int = 200, body: bytes = b"{}", **headers: str) -> Control:
    """A way to something that always answers the same."""

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=body, headers=headers)

    return Control("127.0.0.1:1", transport=httpx2.MockTransport(answer))


def failing(error: Exception) -> Control:
    def answer(_: httpx2.Request) -> httpx2.Response:
        raise error

    return Control("127.0.0.1:1", transport=httpx2.MockTransport(answer))


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("127.0.0.1:8170", "http://127.0.0.1:8170"),
        ("localhost:8170", "http://localhost:8170"),
        ("[::1]:8170", "http://[::1]:8170"),
        ("http://127.0.0.1:8170/", "http://127.0.0.1:8170"),
        ("https://control.example:443", "https://control.example"),
    ],
)
def test_a_control_listener_is_named_by_host_and_port_or_by_url(typed: str, url: str) -> None:
    assert normal_address(typed) == url


def test_fields_that_a_later_version_adds_are_ignored() -> None:
    body = b'{"now": "2026-01-05T12:00:00Z", "speed": 1, "state": "real", "leap": true}'

    assert Answer(body, "http://127.0.0.1:1").read(Clock).state == "real"


@pytest.mark.parametrize(
    "typed",
    ["", "http://", "ftp://host:1", "http://host/v1", "http://me:it@host", "host:many", "host"],
)
def test_what_is_no_address_is_wrong_usage(typed: str) -> None:
    with pytest.raises(UsageError) as caught:
        normal_address(typed)

    assert "FOREWARNED_CONTROL" in caught.value.advice[0]


def test_without_a_server_the_error_says_how_to_start_one_and_where_it_looked() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"

        with pytest.raises(UnreachableError) as caught:
            Control(address).get("/v1/clock")

    told = " ".join([caught.value.message, *caught.value.advice])
    assert f"http://{address}" in told
    assert "'forewarned serve' (in a clone: 'make run')" in told
    assert "FOREWARNED_CONTROL" in told


def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as proxy, socket.socket() as closed:
        proxy.bind(("127.0.0.1", 0))
        proxy.listen()
        proxy.setblocking(False)
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")

        with pytest.raises(UnreachableError):
            Control(f"127.0.0.1:{closed.getsockname()[1]}").get("/v1/clock")

        with pytest.raises(BlockingIOError):
            proxy.accept()


@pytest.mark.parametrize("status", [301, 307, 404, 500])
def test_answers_of_some_other_server_are_told_from_refusals(status: int) -> None:
    other = server(status, b"<html>", Location="http://127.0.0.1:2/")

    with pytest.raises(ServerFailedError) as caught:
        other.get("/v1/clock")

    assert caught.value.code == "not_understood"
    assert str(status) in caught.value.message


@pytest.mark.parametrize("body", [b"<html>", b'{"now": 7}'])
def test_an_answer_that_can_not_be_read_is_the_servers_failure(body: bytes) -> None:
    answer = server(200, body).get("/v1/clock")

    with pytest.raises(ServerFailedError):
        answer.read(Clock)


@pytest.mark.parametrize(("status", "kind"), [(404, RefusedError), (503, ServerFailedError)])
def test_an_error_keeps_the_words_of_the_api(status: int, kind: type[CommandError]) -> None:
    body = b'{"error":{"code":"some_code","message":"some words","field":"by"}}'

    with pytest.raises(kind) as caught:
        server(status, body).post("/v1/clock/step", {"by": "1s"})

    assert caught.value.code == "some_code"
    assert caught.value.message == "some words"
    assert caught.value.field == "by"
    assert caught.value.body == body


def test_a_server_that_takes_too_long_may_have_done_what_was_asked() -> None:
    with pytest.raises(ServerFailedError) as caught:
        failing(httpx2.ReadTimeout("slow")).post("/v1/hosts/h/fail")

    assert "may have taken effect" in caught.value.advice[0]


def test_a_broken_connection_is_the_servers_failure() -> None:
    with pytest.raises(ServerFailedError):
        failing(httpx2.ReadError("reset")).get("/v1/clock")


def test_json_is_what_the_api_returned_without_spaces() -> None:
    answer = Answer(b'{ "b": 1,\n "a": "\xc3\xbc" }', "http://127.0.0.1:1")

    assert answer.as_json() == '{"b":1,"a":"ü"}'
    assert msgspec.json.decode(answer.as_json()) == {"b": 1, "a": "ü"}


@pytest.mark.parametrize(
    ("user", "label"),
    [("ada", "cli:ada"), ("Zoë\n", "cli:Zo??"), ("x" * 100, "cli:" + "x" * 60)],
)
def test_the_history_is_told_who_it_was(
    user: str, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", user)

    assert connection.actor() == label
