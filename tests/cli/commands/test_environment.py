"""`forewarned env`: what other people's clients need to find the server that runs."""

import json
import shlex
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner, Result

from forewarned.cli import cli
from tests.cli.refusing_server import TOKEN
from tests.cli.served import PLAIN, Served, invoke

ARM = "https://127.0.0.1:8171"
FOLDER = "/home/ada o'brien/state"
CA = f"{FOLDER}/arm-ca.pem"
ENDPOINTS = {"metadata": "http://127.0.0.1:8169", "arm": ARM, "ca": CA, "data": FOLDER}


def run(*words: str, ca: str | None = CA, **variables: str) -> Result:
    """Against a server that has the listener, as far as it says."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.url.path == "/v1/endpoints"
        return httpx2.Response(200, json=ENDPOINTS | {"ca": ca})

    return CliRunner(env={**PLAIN, **variables}).invoke(
        cli, ("env", *words), prog_name="forewarned", obj=httpx2.MockTransport(answer)
    )


def told(client: str) -> Any:  # JSON, which tests look into
    return json.loads(run(client, "--json").stdout)


def exports(script: str) -> dict[str, str]:
    words = [shlex.split(line) for line in script.splitlines() if line.startswith("export ")]
    return dict(word.split("=", 1) for _, word in words)


@pytest.mark.parametrize("client", ["az", "python", "node"])
def test_the_script_says_what_the_json_says(client: str) -> None:
    script = run(client)

    assert script.exit_code == 0
    assert exports(script.stdout) == told(client)["variables"]


def test_az_keeps_to_a_directory_beside_the_store() -> None:
    variables = told("az")["variables"]

    assert variables["AZURE_CONFIG_DIR"] == f"{FOLDER}/az"
    assert variables["AZURE_CORE_COLLECT_TELEMETRY"] == "no"
    assert variables["AZURE_CORE_INSTANCE_DISCOVERY"] == "false"
    assert variables["REQUESTS_CA_BUNDLE"] == CA
    assert variables["AZURE_POD_IDENTITY_AUTHORITY_HOST"] == "http://127.0.0.1:8169"


@pytest.mark.parametrize("client", ["az", "python", "node"])
def test_a_certificate_of_the_operators_needs_nothing_to_be_trusted(client: str) -> None:
    script = run(client, ca=None)

    assert script.exit_code == 0
    assert "CA" not in " ".join(exports(script.stdout))


def test_az_registers_the_cloud_selects_it_and_signs_in() -> None:
    lines = run("az").stdout.splitlines()

    register, select, login = [line for line in lines if line.startswith("az ")]
    assert f"--endpoint-resource-manager {ARM}" in register
    assert select.startswith("az cloud set --name forewarned")
    assert login.startswith("az login --identity")


def test_node_has_its_own_way_to_trust() -> None:
    assert told("node")["variables"] == {
        "NODE_EXTRA_CA_CERTS": CA,
        "AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:8169",
        "FOREWARNED_ARM_URL": ARM,
    }


@pytest.mark.parametrize("words", ["az", "python", "node", "az --json"])
def test_no_secret_is_printed(words: str) -> None:
    """S12: what it prints is kept in scripts, and shown on screens."""
    assert run(*words.split(), FOREWARNED_TOKEN=TOKEN).stdout == run(*words.split()).stdout
    assert TOKEN not in run(*words.split(), FOREWARNED_TOKEN=TOKEN).output


def test_a_server_without_the_listener_is_told(served: Served) -> None:
    refused = served.run("env", "az")

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "Its setting 'arm' is off" in refused.stderr


def test_without_a_server_nothing_is_printed_for_a_shell_to_run() -> None:
    refused = invoke("env", "az", FOREWARNED_CONTROL="127.0.0.1:1")

    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "no server answers" in refused.stderr


def test_an_unknown_client_is_refused(served: Served) -> None:
    assert served.run("env", "perl").exit_code == 2
