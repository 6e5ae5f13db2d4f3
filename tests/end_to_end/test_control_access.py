"""S12, S13: a real server that knows who calls its control listener."""

import contextlib
import json
import os
import ssl
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.namespaces import METADATA, network, serving_in, within
from tests.end_to_end.server_process import (
    WRITER_WORKERS,
    Answer,
    Server,
    local_command,
    serving,
    start,
)

SERVICE: Final = ("--mode", "service", "--clock", "real", "--fleet", "fleet.toml")
FLEET: Final = '[[vms]]\nname = "web"\naddress = "127.0.0.1"\n'
EVENT: Final = {"type": "Reboot", "resources": ["web"]}
PATIENCE: Final = 60


@pytest.fixture(scope="module", params=WRITER_WORKERS)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("service")
    (folder / "fleet.toml").write_text(FLEET)
    with serving(folder, *SERVICE, "--workers", request.param) as server:
        yield server


def ask(
    server: Server,
    method: str,
    path: str,
    body: object = None,
    *,
    token: str | None = None,
    connect: Callable[[str], HTTPConnection] = HTTPConnection,
    **headers: str,
) -> Answer:
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    text = body if isinstance(body, str) or body is None else json.dumps(body)
    with contextlib.closing(connect(server.control)) as connection:
        connection.timeout = PATIENCE
        connection.request(method, path, text, headers)
        response = connection.getresponse()
        return Answer(
            status=response.status,
            headers={name.lower(): value for name, value in response.getheaders()},
            body=response.read(),
        )


def token(server: Server, name: str, role: str) -> str:
    text: str = local_command(server, "token", "create", name, "--role", role)["token"]
    return text


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json["error"]["code"]


def test_a_service_answers_strangers_on_loopback_with_no_more_than_its_health(
    service: Server,
) -> None:
    refused = ask(service, "GET", "/v1/events")

    assert code(refused) == (401, "token_missing")
    assert refused.headers["www-authenticate"] == "Bearer"
    assert code(ask(service, "POST", "/v1/events", EVENT, token="fw_x")) == (401, "token_invalid")
    assert code(ask(service, "GET", "/metrics")) == (401, "token_missing")
    assert ask(service, "GET", "/v1/health").json == {"status": "ok"}
    led = ask(service, "GET", "/fleet")
    assert (led.status, led.headers["location"]) == (303, "/sign-in?next=%2Ffleet")


def test_roles_hold_and_history_names_the_principal(service: Server) -> None:
    reader, maintainer = token(service, "rae", "reader"), token(service, "max", "maintainer")

    refused = ask(service, "POST", "/v1/events", EVENT, token=reader)
    made = ask(service, "POST", "/v1/events", EVENT, token=maintainer)
    admins = ask(service, "PUT", "/v1/fleet", {"vms": []}, token=maintainer)

    assert code(refused) == (403, "role_too_low")
    assert "the role maintainer, and 'rae' has the role reader" in refused.json["error"]["message"]
    assert made.status == 201
    assert code(admins) == (403, "role_too_low")
    rows = ask(service, "GET", "/v1/history", token=reader).json["history"]
    [event] = made.json["events"]
    assert "max" in {row["actor"] for row in rows if row["event_id"] == event["event_id"]}


def test_a_revoked_token_is_refused_at_once_and_its_session_ends(service: Server) -> None:
    text = token(service, "eve", "reader")
    signed_in = ask(service, "POST", "/sign-in", f"token={text}&next=/fleet")
    cookie = signed_in.headers["set-cookie"].partition(";")[0]
    before = ask(service, "GET", "/fleet", Cookie=cookie)

    local_command(service, "token", "revoke", "eve")

    after = ask(service, "GET", "/fleet", Cookie=cookie)
    assert (signed_in.status, signed_in.headers["location"]) == (303, "/fleet")
    assert (before.status, after.status) == (200, 303)
    assert b"eve" in before.body
    assert code(ask(service, "GET", "/v1/clock", token=text)) == (401, "token_invalid")
    assert code(ask(service, "GET", "/v1/clock", Cookie=cookie)) == (401, "token_missing")


def test_a_session_steers_nothing_through_the_api(service: Server) -> None:
    """S13: only what pages read by themselves."""
    text = token(service, "ann", "admin")
    cookie = ask(service, "POST", "/sign-in", f"token={text}").headers["set-cookie"]

    read = ask(service, "GET", "/v1/clock", Cookie=cookie.partition(";")[0])
    written = ask(service, "POST", "/v1/events", EVENT, Cookie=cookie.partition(";")[0])

    assert read.status == 200
    assert code(written) == (401, "token_missing")


def test_a_vm_reads_with_the_token_of_its_identity(service: Server) -> None:
    """For the control listener's own address, and for Azure's."""
    path = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource="
    for resource in (f"http://{service.control}", "https://management.azure.com/"):
        text = service.get(path + resource).json["access_token"]

        assert ask(service, "GET", "/v1/events", token=text).status == 200
        refused = ask(service, "POST", "/v1/events", EVENT, token=text)
        assert code(refused) == (403, "role_too_low")


def test_an_emulator_may_ask_for_tokens_too(tmp_path: Path) -> None:
    with serving(tmp_path, "--control-access", "token", "--workers", "0") as server:
        text = token(server, "ann", "admin")

        assert code(ask(server, "POST", "/v1/clock/step", {"by": "1m"})) == (401, "token_missing")
        assert ask(server, "POST", "/v1/clock/step", {"by": "1m"}, token=text).status == 200


def test_a_control_listener_off_loopback_that_asks_for_no_token_does_not_start(
    tmp_path: Path,
) -> None:
    flags = ("--mode", "service", "--clock", "real", "--control", "192.0.2.1:0")

    with start(tmp_path, *flags, "--control-access", "open") as running:
        assert running.wait(PATIENCE) != 0

    assert (
        "anyone who reaches 192.0.2.1:0 would control the fleet" in (tmp_path / "log").read_text()
    )


@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")
@pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("CI") != "true",
    reason="NOT TESTED: another machine on the network, which only root may make",
)
def test_from_another_machine_it_is_reached_over_tls_with_a_token_alone(tmp_path: Path) -> None:
    """S12: where arm is off, too, so that there is no certificate but for this."""
    (tmp_path / "fleet.toml").write_text(FLEET)
    control = ("--control", f"{METADATA}:8443")
    with (
        network(1) as made,
        serving_in(made.host, tmp_path, *SERVICE, *control) as server,
    ):
        text = token(server, "rae", "reader")
        trusting = ssl.create_default_context(cafile=str(server.data / "arm-ca.pem"))

        def tls(where: str) -> HTTPSConnection:
            return HTTPSConnection(where, context=trusting)

        def from_afar(path: str, **more: Any) -> Answer:
            [vm] = made.vms
            return within(vm, lambda: ask(server, "GET", path, **more))

        stranger = from_afar("/v1/events", connect=tls)
        reader = from_afar("/v1/endpoints", connect=tls, token=text)
        page = from_afar("/", connect=tls)
        with pytest.raises((ConnectionError, OSError)):
            from_afar("/v1/health")

    assert code(stranger) == (401, "token_missing")
    assert reader.json["arm"] is None
    assert reader.json["ca"] == str((server.data / "arm-ca.pem").absolute())
    assert page.headers["location"] == "/sign-in"
