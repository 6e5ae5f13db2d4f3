"""Twenty thousand VMs, made, applied and polled as a million would be."""

import contextlib
import json
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests import preloaded
from tests.end_to_end.server_process import Server, environment, serving

VMS = 20_000


def test_a_vm_deep_in_a_large_fleet_reads_its_document(tmp_path: Path) -> None:
    """I8, I9: the fleet arrives in parts, and each VM is who it is."""
    fleet = generated()

    with serving(tmp_path, "--log-level", "warning") as server:
        *progress, result = applied(server, fleet)
        last = server.call("GET", "/v1/vms/set-100_7999")
        first_read = server.get(source=last["address"])
        server.call("POST", "/v1/events", {"type": "Freeze", "resources": [last["name"]]})
        document = server.get(source=last["address"]).json
        other = server.get(source=server.call("GET", "/v1/vms/set-100_0")["address"]).json

    done = [line["done"] for line in progress]
    assert len(done) > 2
    assert done == sorted(done)
    assert {line["total"] for line in progress} <= {0, VMS}
    assert len(result["added"]) == VMS
    assert (last["scope"], first_read.status) == ("vmss/set-100/79", 200)
    [event] = document["Events"]
    assert event["Resources"] == ["set-100_7999"]
    assert other["Events"] == []


def generated() -> bytes:
    words = ("fleet", "generate", "--vms", str(VMS), "--json")
    return preloaded.run(*words, environment=environment()).stdout.encode()


def applied(server: Server, fleet: bytes) -> list[Any]:  # lines of JSON, which the test looks into
    connection = HTTPConnection(server.control, timeout=60)
    with contextlib.closing(connection):
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
        connection.request("PUT", "/v1/fleet", fleet, headers)
        response = connection.getresponse()
        assert response.status == 200
        return [json.loads(line) for line in response]
