"""VMs that a program lists."""

import json
from pathlib import Path

import pytest

from forewarned.actuators.command.inventory import list_vms
from forewarned.actuators.driver import DriverError
from forewarned.service.sources.listing import ListedVm, Listing
from tests.actuators.command.programs import program

WEB = {"vm_id": "5b0b8a3e-0000-4000-8000-000000000001", "name": "web", "host": "hv-a"}


async def test_a_program_says_which_vms_there_are(tmp_path: Path) -> None:
    many = [WEB | {"name": f"web-{n}", "address": "10.0.0.1"} for n in range(2000)]
    (tmp_path / "vms").write_text(json.dumps({"vms": many, "silent": {"hv-b": "down"}}))
    script = program(tmp_path / "list", f"cat {tmp_path}/vms")

    listing = await list_vms((str(script),))

    assert len(listing.vms) == 2000
    assert listing.vms[0] == ListedVm(
        vm_id=WEB["vm_id"], name="web-0", host="hv-a", address="10.0.0.1"
    )
    assert listing.silent == {"hv-b": "down"}
    assert not Listing(vms=(), silent=listing.silent).is_complete


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("""echo '{"vms": []}'; echo no route >&2; exit 3""", "ended with exit code 3: no route"),
        ("echo '[]'", "is not a listing"),
        ("""echo '{"vms": [{"name": "web"}]}'""", "is not a listing"),
        ("""echo '{"vms": [' """, "is not a listing"),
        ("head -c 5000000 /dev/zero", "more than 4 MiB"),
    ],
)
async def test_a_program_that_fails_or_breaks_off_lists_nothing(
    tmp_path: Path, script: str, why: str
) -> None:
    path = program(tmp_path / "list", script)

    with pytest.raises(DriverError, match=why):
        await list_vms((str(path),))
