"""Azure's own credentials against a server that runs, and who it admits in service mode (S12)."""

import base64
import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import (
    ClientSecretCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
)

from forewarned.security.identities import TENANT_ID
from tests import preloaded
from tests.end_to_end.server_process import WORKERS, Answer, Server, environment, serving

SUBSCRIPTIONS = "/subscriptions?api-version=2022-12-01"
FLEET = """\
[[vms]]
name = "web"
address = "127.0.0.1"

[[vms]]
name = "db"
address = "127.0.0.2"
"""


@pytest.fixture(scope="module", params=WORKERS)
def emulator(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("emulator"), "--workers", request.param) as server:
        yield server


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("service")
    (folder / "fleet.toml").write_text(FLEET)
    flags = ("--mode", "service", "--clock", "real", "--fleet", "fleet.toml", "--rate", "100")
    # What these tests ask of the control listener is not what they are about.
    with serving(folder, *flags, "--control-access", "open") as server:
        yield server


def use(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set what `forewarned env python` says, and return the scope to ask a token for."""
    told = server.command("env", "python")["variables"]
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert told["FOREWARNED_ARM_URL"] == f"https://{server.arm}"
    return f"https://{server.arm}/.default"


def looked(server: Server, token: str | None = None) -> Answer:
    """What someone with this token gets to see at the ARM listener."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return server.ask_arm("GET", SUBSCRIPTIONS, **headers)


def claims(token: str) -> Any:  # JSON, which tests look into
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def test_a_managed_identity_gets_the_token_of_the_vm_it_is_on(
    emulator: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = use(emulator, monkeypatch)

    with ManagedIdentityCredential() as credential:
        token = credential.get_token(scope).token

    said = claims(token)
    assert (said["sub"], said["tid"], said["aud"]) == ("web", TENANT_ID, f"https://{emulator.arm}")
    assert said["xms_mirid"].endswith("/virtualMachines/web")
    assert looked(emulator, token).status == 200


def test_a_managed_identity_can_be_any_vm_of_an_emulator(
    emulator: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = use(emulator, monkeypatch)
    where = f"http://{emulator.metadata}/vm/db-1"
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", where)

    with ManagedIdentityCredential(client_id="9f1c") as credential:
        assert claims(credential.get_token(scope).token)["sub"] == "db-1"


def test_the_default_credential_finds_the_identity_endpoint(
    emulator: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = use(emulator, monkeypatch)

    with DefaultAzureCredential(
        exclude_environment_credential=True,
        exclude_workload_identity_credential=True,
        exclude_shared_token_cache_credential=True,
        exclude_visual_studio_code_credential=True,
        exclude_cli_credential=True,
        exclude_developer_cli_credential=True,
        exclude_powershell_credential=True,
        exclude_broker_credential=True,
    ) as credential:
        token = credential.get_token(scope)

    assert claims(token.token)["sub"] == "web"


def test_a_token_is_timed_by_the_machines_clock(emulator: Server) -> None:
    """However far the server's clock was moved: clients keep tokens by real time."""
    path = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=x"
    before = int(emulator.get(path).json["expires_on"])

    emulator.call("POST", "/v1/clock/step", {"by": "2d"})

    assert 0 <= int(emulator.get(path).json["expires_on"]) - before < 600


def test_anything_signs_in_to_an_emulator_on_loopback(
    emulator: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = use(emulator, monkeypatch)

    with _client_secret(emulator, "anybody", "anything") as credential:
        token = credential.get_token(scope).token

    assert looked(emulator, token).status == 200
    assert looked(emulator).status == 200


def test_a_service_principal_signs_in_to_a_service(
    service: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = use(service, monkeypatch)
    made = _token("create", "robot", "--role", "reader", "--service-principal", server=service)

    with _client_secret(service, made["client_id"], made["client_secret"]) as credential:
        token = credential.get_token(scope).token
    with (
        _client_secret(service, made["client_id"], "wrong") as credential,
        pytest.raises(ClientAuthenticationError, match="client id and secret"),
    ):
        credential.get_token(scope)

    assert looked(service, token).status == 200
    _token("revoke", "robot", server=service)
    assert looked(service, token).status == 401


def test_a_service_admits_tokens_as_they_are_made_and_revoked(service: Server) -> None:
    token = _token("create", "alice", "--role", "admin", server=service)["token"]
    assert looked(service, token).status == 200

    _token("revoke", "alice", server=service)

    refused = looked(service, token)
    assert (refused.status, refused.json["error"]["code"]) == (401, "InvalidAuthenticationToken")
    assert "www-authenticate" in refused.headers


def test_a_service_wants_a_token_on_loopback_too_and_writes_refusals_down(service: Server) -> None:
    refused = looked(service)

    assert (refused.status, refused.json["error"]["code"]) == (401, "AuthenticationFailed")
    rows = service.call("GET", "/v1/history?limit=20")["history"]
    assert any(row["action"] == "refused" and row["address"] == "127.0.0.1" for row in rows)


def test_callers_can_not_choose_the_address_that_history_records(service: Server) -> None:
    """S14."""
    service.ask_arm("GET", SUBSCRIPTIONS, **{"X-Forwarded-For": "203.0.113.99"})

    rows = service.call("GET", "/v1/history?limit=100")["history"]
    assert {row["address"] for row in rows if row["action"] == "refused"} == {"127.0.0.1"}


def test_a_vm_of_a_service_gets_its_own_token_and_no_other(service: Server) -> None:
    path = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource="
    audience = f"https://{service.arm}"
    tokens = [
        service.get(path + audience, source=address).json["access_token"]
        for address in ("127.0.0.1", "127.0.0.2")
    ]

    assert [claims(token)["sub"] for token in tokens] == ["web", "db"]
    assert service.get(f"/vm/db{path}{audience}").status == 404
    assert looked(service, tokens[1]).status == 200
    elsewhere = service.get(f"{path}https://elsewhere").json["access_token"]
    assert looked(service, elsewhere).status == 401


def test_a_broken_file_of_principals_stops_the_start_and_says_the_line(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "principals.toml").write_text("\n[[principals]]\nname = 1\n")

    with pytest.raises(AssertionError, match="did not start"), serving(tmp_path):
        pass

    told = (tmp_path / "log").read_text()
    assert "principals.toml:3: principals[0].name: expected up to 64 letters" in told


def test_the_exports_of_env_can_be_read_by_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "a folder's $(name)"
    folder.mkdir()
    with serving(folder) as server:
        variables = environment(FOREWARNED_CONTROL=f"http://{server.control}")
        script = preloaded.run("env", "python", environment=variables).stdout
        shown = subprocess.run(
            ["sh", "-c", f'{script}\nprintf %s "$REQUESTS_CA_BUNDLE"'],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert shown == str(folder / "state" / "arm-ca.pem")
    assert Path(shown).read_text().startswith("-----BEGIN CERTIFICATE-----")
    assert shlex.quote(shown) in script


def _client_secret(server: Server, client_id: str, secret: str) -> ClientSecretCredential:
    return ClientSecretCredential(
        TENANT_ID,
        client_id,
        secret,
        authority=f"https://{server.arm}",
        disable_instance_discovery=True,
    )


def _token(*words: str, server: Server) -> Any:
    return server.command("token", *words, "--data", str(server.data))
