"""The parts of the driver that need no libvirt."""

import subprocess
import sys
from pathlib import Path

import pytest

from forewarned.actuators.driver import Power
from forewarned.actuators.libvirt.definition import parse_definition
from forewarned.actuators.libvirt.feasibility import objection
from forewarned.actuators.libvirt.marks import NO_MARK, Mark, mark_from_xml, mark_to_xml
from forewarned.actuators.libvirt.vocabulary import EFFECTS, Word

SRC = Path(__file__).resolve().parents[3] / "src"
DOMAIN = """
<domain type='kvm'>
  <name>web</name>
  <uuid>11111111-1111-4111-8111-111111111111</uuid>
  <metadata>
    <fw:vm xmlns:fw='urn:forewarned:vm' availability-set='shop' zone='2'/>
  </metadata>
  <memory unit='MiB'>512</memory>
  <on_reboot>destroy</on_reboot>
  <devices>
    <interface type='bridge'>
      <mac address='52:54:00:AA:00:01'/>
      <source bridge='br0'/>
      <filterref filter='clean-traffic'><parameter name='IP' value='10.0.0.5'/></filterref>
    </interface>
    <interface type='network'>
      <mac address='52:54:00:aa:00:02'/>
      <source network='default'/>
    </interface>
    <hostdev mode='subsystem' type='pci'/>
  </devices>
</domain>
"""


@pytest.mark.parametrize("issued", [False, True])
def test_a_mark_is_read_as_it_was_written(issued: bool) -> None:
    mark = Mark(
        key='E-"1"/<web>&', issued=issued, power=Power.OFF, host="hv-b", domain_id=7, run="hv-a/3"
    )

    assert mark_from_xml(mark_to_xml(mark)) == mark


@pytest.mark.parametrize("text", ["", "<task", "<task power='strange'/>"])
def test_what_is_no_mark_of_ours_is_none(text: str) -> None:
    assert mark_from_xml(text) == NO_MARK


def test_a_definition_is_read_from_the_xml_of_a_domain() -> None:
    web = parse_definition(DOMAIN)

    assert (web.name, web.memory, web.host_devices, web.on_reboot) == (
        "web",
        512 << 20,
        1,
        "destroy",
    )
    assert (web.availability_set, web.zone) == ("shop", "2")
    assert [(each.mac, each.network, each.addresses) for each in web.interfaces] == [
        ("52:54:00:aa:00:01", "", ("10.0.0.5",)),
        ("52:54:00:aa:00:02", "default", ()),
    ]


@pytest.mark.parametrize(
    ("word", "power", "why"),
    [
        (Word.LIVE_MIGRATE, Power.RUNNING, "devices of its host"),
        (Word.LIVE_MIGRATE, Power.OFF, "only a running VM"),
        (Word.ACPI, Power.RUNNING, "on_reboot is destroy"),
        (Word.RESET, Power.PAUSED, "its state is paused"),
        (Word.COLD_MOVE, Power.RUNNING, "transient"),
        (Word.DESTROY, Power.OFF, None),
    ],
)
def test_what_is_impossible_is_known_before_it_is_tried(
    word: Word, power: Power, why: str | None
) -> None:
    found = objection(word, parse_definition(DOMAIN), power=power, is_persistent=False)

    assert (found is None) if why is None else (why in (found or ""))


def test_every_word_has_an_effect() -> None:
    assert set(EFFECTS) == set(Word)


def test_without_its_library_the_driver_says_how_to_install_it() -> None:
    code = "from forewarned.actuators.libvirt.installation import require; require()"

    # Without any installed package.
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "apt install libvirt-dev gcc pkg-config python3-dev" in done.stderr
    assert "pip install 'forewarned[libvirt]'" in done.stderr
