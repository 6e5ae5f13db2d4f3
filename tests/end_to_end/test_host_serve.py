"""A hypervisor that serves its own VMs, fed by a server on another machine."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests import preloaded
from tests.cluster.waiting import wait_until
from tests.end_to_end.agents import schedule
from tests.end_to_end.bridges import Guest, Hypervisor, hypervisor
from tests.end_to_end.namespaces import METADATA, ip, serving_in, within
from tests.end_to_end.server_process import Server, environment
from tests.packages import need

WEB: Final = "10.77.0.4"
SERVER: Final = "10.78.0.1"
_FLAGS: Final = (
    # Only a server of several processes has a feed.
    *("--mode", "service", "--control-access", "open", "--workers", "1"),
    *("--metadata", "127.0.0.1:8169", "--feed", f"{SERVER}:8172"),
)
_FLEET: Final = {
    "vms": [
        {"name": "web", "host": "hv-a", "port_mark": 101, "interface": "tap-web"},
        {"name": "far", "host": "hv-b", "port_mark": 102, "interface": "tap-far"},
    ]
}

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's"),
    pytest.mark.skipif(
        os.geteuid() != 0 and os.environ.get("CI") != "true",
        reason="NOT TESTED: a hypervisor in a network namespace, which only root may make",
    ),
]


def test_vms_are_served_on_their_hypervisor_and_go_on_reading_without_the_server(
    tmp_path: Path,
) -> None:
    """I24, S3: and a hypervisor knows none but its own VMs."""
    need("nft")
    with contextlib.ExitStack() as stack:
        hv = stack.enter_context(hypervisor())
        management = _management(stack, hv)
        web, far = _guests(hv)
        with serving_in(management, tmp_path, *_FLAGS) as server:
            _call(management, server, "PUT", "/v1/fleet", _FLEET)
            _load_rules(hv, management)
            stack.enter_context(_host_serve(hv, tmp_path))
            wait_until(lambda: _answers(web))
            event_id = within(management, lambda: schedule(server, "Reboot", "web"))
            wait_until(lambda: web.events() == [event_id])
            unknown = far.read()
        cut_off = web.events(), web.approve(event_id)
        with serving_in(management, tmp_path, *_FLAGS) as server:
            wait_until(lambda: web.approve(event_id).status == 200)
            [event] = web.read().json["Events"]
            [row] = _call(management, server, "GET", "/v1/history?action=approved")["history"]

    assert unknown.status == 403
    assert unknown.json["error"].startswith("Port mark 102 is not bound to any VM")
    assert (cut_off[0], cut_off[1].status) == ([event_id], 503)
    assert event["EventStatus"] == "Started"
    assert (row["actor"], row["address"]) == ("vm:web", "port:101")


def _management(stack: contextlib.ExitStack, hv: Hypervisor) -> str:
    """The server's machine, with a cable to the hypervisor."""
    name = f"{hv.namespace}-mgmt"
    ip("netns", "add", name)
    stack.callback(ip, "netns", "del", name)
    ip("-n", name, "link", "set", "lo", "up")
    ip("-n", name, "link", "add", "hv", "type", "veth", "peer", "mgmt", "netns", hv.namespace)
    for namespace, device, address in ((name, "hv", SERVER), (hv.namespace, "mgmt", "10.78.0.2")):
        ip("-n", namespace, "addr", "add", f"{address}/24", "dev", device)
        ip("-n", namespace, "link", "set", device, "up")
    return name


def _guests(hv: Hypervisor) -> tuple[Guest, Guest]:
    hv.bridge("br0")
    ip("-n", hv.namespace, "route", "add", "10.77.0.0/24", "src", METADATA, "dev", "br0")
    return hv.guest("tap-web", "br0", WEB), hv.guest("tap-far", "br0", "10.77.0.5")


def _load_rules(hv: Hypervisor, management: str) -> None:
    words = ("host", "rules", "hv-a", "--every-vm", "--control", "127.0.0.1:8082")
    rules = preloaded.run(*words, environment=environment(), namespace=management)
    hv.run("nft", "-f", "-", stdin=rules.stdout)


@contextlib.contextmanager
def _host_serve(hv: Hypervisor, folder: Path) -> Iterator[None]:
    bundle = folder / "hv-a.pem"
    words = ("host", "certificate", "hv-a", "--data", str(folder / "state"))
    bundle.write_text(preloaded.run(*words, environment=environment()).stdout)
    with (folder / "host.log").open("w") as log:
        running = preloaded.start(
            *("host", "serve", "--feed", f"{SERVER}:8172"),
            *("--certificate", str(bundle), "--identity", "port-marks"),
            # The test asks as fast as it can until it is told what it waits for.
            *("--rate-limit", "off"),
            environment=environment(),
            folder=folder,
            output=log,
            errors=log,
            namespace=hv.namespace,
        )
    with running:
        try:
            yield
        finally:
            running.terminate()


def _answers(guest: Guest) -> bool:
    try:
        return guest.read().status == 200
    except OSError:
        return False


def _call(
    namespace: str, server: Server, method: str, path: str, body: object = None
) -> Any:  # JSON, which the test looks into
    return within(namespace, lambda: server.call(method, path, body))
