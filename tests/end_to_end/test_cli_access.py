"""The CLI and a server that asks who is calling: tokens, roles and TLS, end to end (S12)."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import preloaded
from tests.end_to_end.namespaces import METADATA, Network, network, serving_in
from tests.end_to_end.server_process import (
    WRITER_WORKERS,
    Server,
    environment,
    local_command,
    serving,
)

SERVICE = ("--mode", "service", "--clock", "real", "--fleet", "fleet.toml", "--rate", "100")
FLEET = """\
[[vms]]
name = "web"
address = "127.0.0.1"

[[vms]]
name = "db"
address = "127.0.0.2"
"""
LOOKING = ("events", "history", "fleet show", "clock", "settings --running", "events --watch")


@pytest.fixture(scope="module", params=WRITER_WORKERS)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("service")
    (folder / "fleet.toml").write_text(FLEET)
    with serving(folder, *SERVICE, "--workers", request.param) as server:
        yield server


def command(
    server: Server, words: str, *, token: str = "", at: str = "", namespace: str | None = None
) -> subprocess.CompletedProcess[str]:
    """One command, as the principal that has the token."""
    return preloaded.run(
        *words.split(), environment=_variables(server, token, at), namespace=namespace
    )


def _variables(server: Server, token: str, at: str = "") -> dict[str, str]:
    where = at or f"http://{server.control}"
    return environment(FOREWARNED_CONTROL=where, FOREWARNED_TOKEN=token, FOREWARNED_CA="")


def admitted(server: Server, name: str, role: str) -> str:
    return str(local_command(server, "token", "create", name, "--role", role)["token"])


def test_a_stranger_is_refused_and_told_what_to_do(service: Server) -> None:
    """S12: deny by default, on loopback too."""
    for words in LOOKING:
        refused = command(service, words)

        assert (refused.returncode, refused.stdout) == (1, ""), words
        assert "forewarned token create NAME --role ROLE" in refused.stderr, words
        assert "FOREWARNED_TOKEN" in refused.stderr, words


def test_a_reader_looks_and_may_not_schedule(service: Server) -> None:
    """S12."""
    token = admitted(service, "rita", "reader")

    for words in LOOKING[:-1]:
        done = command(service, words, token=token)
        assert (done.returncode, done.stderr) == (0, ""), words
    refused = command(service, "schedule reboot --vm web", token=token)
    as_json = command(service, "schedule reboot --vm web --json", token=token)
    events = command(service, "events --all --json", token=token)

    assert refused.returncode == 1
    assert "needs the role maintainer, and 'rita' has the role reader" in refused.stderr
    assert "--role maintainer" in refused.stderr
    assert json.loads(as_json.stderr)["error"]["code"] == "role_too_low"
    assert json.loads(events.stdout)["events"] == []
    assert token not in refused.stderr + as_json.stderr


def test_each_role_may_do_more_and_the_history_has_their_names(
    service: Server, tmp_path: Path
) -> None:
    """S12."""
    approver = admitted(service, "ann", "approver")
    maintainer = admitted(service, "max", "maintainer")
    admin = admitted(service, "ada", "admin")
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(FLEET + '\n[[vms]]\nname = "new"\naddress = "127.0.0.3"\n')
    # A VM reads, so there is a notice to wait for.
    assert service.get(source="127.0.0.2").status == 200

    scheduled = command(service, "schedule reboot --vm db --json", token=maintainer)
    too_much = command(service, f"fleet apply {fleet}", token=maintainer)
    applied = command(service, f"fleet apply {fleet}", token=admin)
    event = json.loads(scheduled.stdout)["events"][0]["event_id"]
    kept = tmp_path / "token"
    kept.write_text(f"{approver}\n")
    approved = command(service, f"approve {event} --token-file {kept}")

    assert scheduled.returncode == 0, scheduled.stderr
    assert too_much.returncode == 1
    assert "needs the role admin, and 'max' has the role maintainer" in too_much.stderr
    assert applied.returncode == 0, applied.stderr
    assert approved.returncode == 0, approved.stderr
    history = command(service, "history --json", token=approver)
    did = {(row["actor"], row["action"]) for row in json.loads(history.stdout)["history"]}
    assert {("max", "scheduled"), ("ann", "approved")} <= did


def test_a_revoked_token_is_refused_at_once_and_ends_what_it_watches(
    service: Server, tmp_path: Path
) -> None:
    """S12."""
    token = admitted(service, "vic", "reader")
    admin = admitted(service, "eve", "admin")
    with (
        (tmp_path / "errors").open("w+") as errors,
        preloaded.start(
            *("events", "--watch", "--json"),
            folder=tmp_path,
            environment=_variables(service, token),
            errors=errors,
        ) as watching,
    ):
        try:
            assert "events" in json.loads(watching.stdout.readline())

            local_command(service, "token", "revoke", "vic")
            refused = command(service, "events", token=token)
            # The next thing to tell is what a watcher without a token is not told.
            assert service.get(source="127.0.0.1").status == 200
            command(service, "schedule freeze --vm web", token=admin)
            printed, said = watching.stdout.read(), (tmp_path / "errors").read_text()
        finally:
            watching.kill()

    assert refused.returncode == 1
    assert "forewarned token create" in refused.stderr
    assert (watching.returncode, printed) == (1, "")
    assert json.loads(said)["error"]["code"] == "signed_out"
    assert token not in refused.stderr + said


@pytest.fixture
def cable() -> Iterator[Network]:
    with network(1) as made:
        yield made


@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")
@pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("CI") != "true",
    reason="NOT TESTED: control over a network, in namespaces that only root may make",
)
def test_from_another_machine_it_takes_the_certificate_and_a_token(
    cable: Network, tmp_path: Path
) -> None:
    """S12: TLS off loopback."""
    (tmp_path / "fleet.toml").write_text(FLEET)
    where = f"{METADATA}:8170"
    with serving_in(cable.host, tmp_path, *SERVICE, "--control", where) as server:
        token = admitted(server, "rita", "reader")
        ca = tmp_path / "their-copy.pem"
        ca.write_text(local_command(server, "ca")["pem"])

        def from_there(words: str, at: str, token: str = token) -> subprocess.CompletedProcess[str]:
            return command(server, words, token=token, at=at, namespace=cable.vms[0])

        looked = from_there(f"events --ca {ca}", f"https://{where}")
        watched_without_a_token = from_there(f"events --watch --ca {ca}", f"https://{where}", "")
        unknown = from_there("events", f"https://{where}")
        in_clear = from_there(f"events --ca {ca}", f"http://{where}")
        without = from_there("events", where, "")

    assert (looked.returncode, looked.stdout) == (0, "no open events\n"), looked.stderr
    assert watched_without_a_token.returncode == 1
    assert "forewarned token create" in watched_without_a_token.stderr
    assert unknown.returncode == 3
    assert "'forewarned ca' on the server's machine" in unknown.stderr
    assert in_clear.returncode == 2
    assert "it could be read in transit" in in_clear.stderr
    assert without.returncode == 4
    assert f"write https://{where}" in without.stderr
