"""Who a caller from this machine is that names no VM: the fleet's first one, whatever happens."""

from pathlib import Path

import pytest

from tests.end_to_end.server_process import WRITER_WORKERS, Server, serving

NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
TOKEN = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://localhost"
GROUP = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/demo"
VERSION = "api-version=2024-11-01"
FLEET = 'resource_group = "demo"\n[[vms]]\nname = "first"\n[[vms]]\nname = "second"\n'


@pytest.mark.parametrize("workers", WRITER_WORKERS)
def test_the_default_vm_is_the_fleets_first_at_any_time_and_az_gets_its_token_without_one(
    tmp_path: Path, workers: str
) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(FLEET)

    with serving(tmp_path, "--fleet", str(fleet), "--workers", workers) as server:
        seen = [default_vm(server)]
        for name in ("first", "second"):
            delete(server, name)
            seen.append(default_vm(server))
        token = server.get(TOKEN)
        make(server, "third")
        make(server, "fourth")
        seen.append(default_vm(server))
        server.call("POST", "/v1/reset")
        seen.append(default_vm(server))

    assert seen == ["first", "second", None, "third", "first"]
    assert token.status == 200, token.body
    assert token.json["access_token"].count(".") == 2


def default_vm(server: Server) -> str | None:
    answer = server.get(NAME)
    return answer.body.decode() if answer.status == 200 else None


def delete(server: Server, name: str) -> None:
    answer = server.ask_arm("DELETE", f"{path(name)}?{VERSION}")
    assert answer.status == 202, answer.body
    server.call("POST", "/v1/clock/step", {"by": "1h"})


def make(server: Server, name: str) -> None:
    server.ask_arm("PUT", f"{GROUP}?{VERSION}", {"location": "local"})
    answer = server.ask_arm("PUT", f"{path(name)}?{VERSION}", {"location": "local"})
    assert answer.status == 201, answer.body


def path(name: str) -> str:
    return f"{GROUP}/providers/Microsoft.Compute/virtualMachines/{name}"
