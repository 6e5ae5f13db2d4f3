"""Two hundred VMs, told apart by nothing but their addresses."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.end_to_end.server_process import serving

FLEET = """
[[scale_sets]]
name = "blue"
capacity = 100

[[scale_sets]]
name = "green"
capacity = 100
"""


def test_two_hundred_vms_each_read_the_document_of_their_own_scope(tmp_path: Path) -> None:
    """I8: one scope, one document; I9: never another scope's events."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(FLEET)

    with serving(tmp_path, "--fleet", str(fleet)) as server, ThreadPoolExecutor(20) as pool:
        vms = [vm for scope in server.command("fleet", "show")["scopes"] for vm in scope["vms"]]
        first = list(pool.map(lambda vm: server.get(source=vm["address"]).status, vms))
        server.command("schedule", "freeze", "--vm", "blue_7")
        documents = list(pool.map(lambda vm: server.get(source=vm["address"]).body, vms))

    assert len({vm["address"] for vm in vms}) == 200
    assert first == [200] * 200
    seen = {vm["name"]: body for vm, body in zip(vms, documents, strict=True)}
    blue = {body for name, body in seen.items() if name.startswith("blue")}
    green = {body for name, body in seen.items() if name.startswith("green")}
    assert len(blue) == 1
    assert json.loads(blue.pop())["Events"][0]["Resources"] == ["blue_7"]
    assert green == {b'{"DocumentIncarnation":1,"Events":[]}'}
