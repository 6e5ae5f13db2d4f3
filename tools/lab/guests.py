"""A guest of the lab: its domain, and what it says on its serial port."""

import itertools
import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from tools.lab.image import Image
from tools.lab.kvm import has_kvm

_PRESSURE: Final = Path("/proc/pressure/cpu")
_LOOKS: Final = 0.02
"""Seconds between two looks at a serial port's file."""
_PROCESSOR: Final = "<cpu mode='custom' match='exact'><model fallback='forbid'>qemu64</model></cpu>"
_EMULATOR: Final = "<tcg><tb-cache unit='MiB'>24</tb-cache></tcg>"
"""After a reset the kernel is unpacked over the one before, and each page of code that QEMU has
translated of that one costs time. With a small cache it has few: the boot takes half as long."""
PATIENCE: Final = 90.0
"""Seconds until a guest is given up. Without KVM on a busy machine it boots slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestPlan:
    name: str
    number: int
    """Makes its UUID and addresses."""
    bridge: str = "br0"
    """Of its host."""
    takes: int | None = None
    """The number of the guest whose address it uses; None for its own."""
    approves: bool = True
    tries: str = ""
    """The id of an event that it tries to approve with every poll, whosoever it is; else empty."""
    ignores_button: bool = False

    @property
    def uuid(self) -> str:
        return f"{self.number:08d}-0000-4000-8000-000000000000"

    @property
    def address(self) -> str:
        return f"10.77.0.{10 + (self.number if self.takes is None else self.takes)}"

    @property
    def mac(self) -> str:
        return f"52:54:00:77:00:{10 + self.number:02x}"

    @property
    def interface(self) -> str:
        """Its port at the bridge."""
        return f"fw-{self.name}"

    def domain(self, image: Image, serial: Path) -> str:
        """Without disks or anything else that it does not need."""
        options = {
            "address": f"{self.address}/24",
            "approve": self.tries or ("yes" if self.approves else "no"),
            "button": "ignored" if self.ignores_button else "heard",
        }
        told = " ".join(f"fw.{name}={value}" for name, value in options.items())
        if has_kvm():
            # Both hosts are this machine, so their processors are alike.
            hypervisor, processor, emulator = "kvm", "<cpu mode='host-passthrough'/>", ""
        else:
            hypervisor, processor, emulator = "qemu", _PROCESSOR, _EMULATOR
        return f"""
<domain type='{hypervisor}'>
  <name>{self.name}</name>
  <uuid>{self.uuid}</uuid>
  <metadata><fw:vm xmlns:fw='urn:forewarned:vm' address='{self.address}'/></metadata>
  <memory unit='MiB'>128</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='pc'>hvm</type>
    <kernel>{image.kernel}</kernel>
    <initrd>{image.first_files}</initrd>
    <cmdline>console=ttyS0 quiet panic=1 mitigations=off nokaslr edd=off {told}</cmdline>
  </os>
  <features><acpi/>{emulator}</features>
  {processor}
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>restart</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <controller type='usb' model='none'/>
    <interface type='bridge'>
      <mac address='{self.mac}'/>
      <source bridge='{self.bridge}'/>
      <target dev='{self.interface}'/>
      <model type='virtio'/>
      <rom enabled='no'/>
    </interface>
    <serial type='file'><source path='{serial}' append='on'/></serial>
    <memballoon model='none'/>
  </devices>
</domain>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    at: float
    """When this machine saw it: a guest's own clock stands still while it does."""
    stalled: float
    """For how many seconds, until then, processes have waited for a processor."""
    text: str


@dataclass(kw_only=True)
class SerialPort:
    """Reads what a guest says, as it says it."""

    file: Path
    lines: list[Line] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self.file.touch()
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def _read(self) -> None:
        rest = ""
        with self.file.open(errors="replace") as stream:
            while not self._is_over.wait(_LOOKS):
                *whole, rest = (rest + stream.read()).split("\n")
                if not whole:
                    continue
                with self._news:
                    at, stalled = time.monotonic(), _stalled()
                    self.lines += [
                        Line(at=at, stalled=stalled, text=said[1].rstrip())
                        for line in whole
                        if (said := re.search(r"FW (.*)", line))
                    ]
                    self._news.notify_all()

    def wait_for(self, pattern: str, *, since: int = 0, patience: float = PATIENCE) -> int:
        """The number of the first line from number `since` on that has the pattern."""

        def found() -> list[int]:
            lines = enumerate(self.lines[since:], since)
            return [number for number, line in lines if re.search(pattern, line.text)]

        with self._news:
            if not self._news.wait_for(found, timeout=patience):
                heard = "\n".join(line.text for line in self.lines[-20:])
                raise AssertionError(f"no {pattern!r} within {patience:.0f} s, but:\n{heard}")
            return found()[0]

    def boots(self) -> list[str]:
        """The id of each boot so far."""
        said = (line.text.split() for line in self.lines)
        return [words[1] for words in said if words[0] == "booted"]

    @property
    def last_at(self) -> float:
        """When it last said something."""
        return self.lines[-1].at

    def longest_gap(self, *, since: float) -> float:
        """Seconds between two polls, from that time until now.

        An emulated guest is one process of many. Time in which processes waited for a processor
        does not count there, as this machine may have other things to do.
        """
        said = [line for line in self.lines if line.at >= since]
        polls = [line for line in said if line.text.startswith("poll ")]
        return max((_gap(*pair) for pair in itertools.pairwise(polls)), default=0)


def _gap(one: Line, other: Line) -> float:
    seconds = other.at - one.at
    return seconds if has_kvm() else seconds - (other.stalled - one.stalled)


def _stalled() -> float:
    """0 at all times where the kernel does not say."""
    try:
        said = _PRESSURE.read_text()
    except OSError:
        return 0
    total = re.match(r"some .* total=(\d+)", said)
    return 0 if total is None else int(total[1]) / 1_000_000
