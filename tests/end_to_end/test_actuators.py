"""A server in service mode whose events are carried out by programs: real processes throughout."""

import contextlib
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests import preloaded
from tests.actuators.command.programs import program
from tests.end_to_end.server_process import Server, environment, local_command
from tests.end_to_end.supervised_server import SupervisedServer, start_supervised, wait_until

SERVICE = ("--mode", "service", "--clock", "real", "--config", "forewarned.toml")
VMS = {"web": "127.0.0.1", "db": "127.0.0.2"}
SETTINGS = """\
[actuators.scripts]
driver = "command"
hosts = ["*"]
reboot = {{ argv = ["{folder}/vm-reboot"] }}
redeploy = {{ argv = ["{folder}/vm-move"] }}
listing = ["{folder}/vm-list"]
[[sources]]
actuator = "scripts"
every = "5s"
"""
SHOP = {"vm_id": "5b0b8a3e-0000-4000-8000-000000000001", "name": "shop", "host": "hv-a"}


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[SupervisedServer]:
    program(tmp_path / "vm-reboot", f'echo "$FOREWARNED_VM" >> {tmp_path}/reboots')
    program(tmp_path / "vm-list", f"echo '{json.dumps({'vms': [SHOP]})}'")
    program(tmp_path / "vm-move", """echo '{"host": "hv-b"}'""")
    (tmp_path / "forewarned.toml").write_text(SETTINGS.format(folder=tmp_path))
    with start_supervised(tmp_path, VMS, *SERVICE) as supervised:
        yield supervised


class Operator:
    def __init__(self, server: Server) -> None:
        self._server = server
        made = local_command(server, "token", "create", "ann", "--role", "maintainer")
        self._token = str(made["token"])

    def ask(self, method: str, path: str, body: object = None) -> Any:  # JSON
        with contextlib.closing(HTTPConnection(self._server.control, timeout=60)) as connection:
            headers = {
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self._token}",
            }
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, headers)
            response = connection.getresponse()
            answer = response.read()
        assert response.status < 400, answer
        return json.loads(answer)

    def schedule(self, type_: str, vm: str) -> str:
        answer = self.ask("POST", "/v1/events", {"type": type_, "resources": [vm]})
        return str(answer["events"][0]["event_id"])

    def is_over(self, event_id: str) -> bool:
        return bool(self.ask("GET", f"/v1/events/{event_id}")["status"] == "Completed")


def test_events_are_carried_out_by_the_servers_own_actuator(
    supervised: SupervisedServer, tmp_path: Path
) -> None:
    """It needs no token of the operator's, and is restarted like the server's other processes.

    It also lists its platform, and what is found there can be acted on at once.
    """
    operator = Operator(supervised.server)

    wait_until(lambda: bool(operator.ask("GET", "/v1/sources")["sources"]))
    reboot = operator.schedule("Reboot", "web")
    wait_until(lambda: operator.is_over(reboot))
    supervised.kill("actuators")
    supervised.healed("actuators")
    redeploy = operator.schedule("Redeploy", "db")
    wait_until(lambda: operator.is_over(redeploy))
    listed = operator.schedule("Redeploy", "shop")
    wait_until(lambda: operator.is_over(listed))

    assert (tmp_path / "reboots").read_text() == "web\n"
    assert operator.ask("GET", "/v1/vms/db")["host"] == "hv-b"
    shop = operator.ask("GET", "/v1/vms/shop")
    assert (shop["host"], shop["vm_id"]) == ("hv-b", SHOP["vm_id"])


def test_a_mistake_in_an_actuators_table_keeps_the_server_from_starting(tmp_path: Path) -> None:
    (tmp_path / "forewarned.toml").write_text('[actuators.one]\ndriver = "commnd"\n')

    words = ("serve", "--mode", "service")
    done = preloaded.run(*words, folder=tmp_path, environment=environment())

    assert done.returncode == 2
    assert "forewarned.toml:2: actuators.one.driver" in done.stderr
    assert "did you mean command?" in done.stderr
