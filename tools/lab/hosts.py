"""The hosts of the lab: network namespaces that share a bridge, with a libvirt in each."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.end_to_end.namespaces import METADATA, inside, ip
from tools.lab.image import kept_folder

NAMES: Final = ("hv-a", "hv-b")
PATIENCE: Final = 90.0
"""Seconds for a libvirt to answer. The first start looks at what QEMU can do."""
_QEMU: Final = "libvirt-qemu"
_START: Final = """
hostname "$NAME"
for pair in var:/var/lib/libvirt run:/run/libvirt etc:/etc/libvirt log:/var/log/libvirt; do
    mkdir -p "${pair#*:}"
    mount --bind "$FOLDER/${pair%%:*}" "${pair#*:}"
done
mkdir -p /var/cache/libvirt
mount --bind "$CACHE" /var/cache/libvirt
for file in hosts passwd group; do
    mount --bind "$FOLDER/etc/$file" "/etc/$file"
done
exec libvirtd --listen --config /etc/libvirt/libvirtd.conf --pid-file /run/libvirt/lab.pid
"""
"""Run in a mount namespace of its own, so that a libvirt of this machine keeps its files. That of
`ip netns exec` has shown it the interfaces of its network namespace already."""


@dataclass(kw_only=True)
class LabHost:
    name: str
    namespace: str
    address: str
    """On the network over which hosts move VMs."""
    folder: Path
    running: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.folder / "sock" / "libvirt-sock"

    def prepare(self, names: dict[str, str], *, number: int) -> None:
        for part in ("var", "run", "etc", "log", "sock"):
            (self.folder / part).mkdir(parents=True)
        listed = "".join(f"{at} {name} {name}-mig\n" for name, at in names.items())
        files = {
            "hosts": f"127.0.0.1 localhost\n{listed}",
            # libvirt looks for its user before it reads that it shall use another.
            "passwd": f"{Path('/etc/passwd').read_text()}{_QEMU}:x:64055:64055::/:/bin/false\n",
            "group": f"{Path('/etc/group').read_text()}{_QEMU}:x:64055:\nkvm:x:64056:\n",
            "libvirtd.conf": self._daemon_settings(number),
            "qemu.conf": self._qemu_settings(),
        }
        for name, text in files.items():
            (self.folder / "etc" / name).write_text(text)

    def _daemon_settings(self, number: int) -> str:
        # It listens between the hosts only: they are the only ones on that network.
        return f"""
unix_sock_dir = "{self.folder}/sock"
unix_sock_rw_perms = "0700"
auth_unix_rw = "none"
auth_unix_ro = "none"
listen_tls = 0
listen_tcp = 1
listen_addr = "{self.address}"
auth_tcp = "none"
host_uuid = "{number:08d}-1111-4222-8333-444444444444"
log_outputs = "3:file:{self.folder}/libvirtd.log"
"""

    def _qemu_settings(self) -> str:
        return f"""
security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = [ ]
namespaces = [ ]
stdio_handler = "file"
migration_address = "{self.address}"
"""

    def start(self) -> None:
        """Returns at once."""
        cache = kept_folder() / f"libvirt-{self.name}"
        cache.mkdir(exist_ok=True)
        settings = {"NAME": self.name, "FOLDER": str(self.folder), "CACHE": str(cache)}
        with (self.folder / "output").open("ab") as output:
            self.running = subprocess.Popen(
                [*inside(self.namespace), "unshare", "--mount", "--uts", "sh", "-ec", _START],
                env=os.environ | settings,
                stdout=output,
                stderr=output,
                # Ctrl-C ends the lab, which ends its guests first.
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        import libvirt  # noqa: PLC0415  # once the lab has seen that it is installed

        # It would print every failure.
        libvirt.registerErrorHandler(lambda _, __: None, None)
        give_up_at = time.monotonic() + PATIENCE
        while True:
            try:
                libvirt.open(f"qemu+unix:///system?socket={self.socket}").close()
            except libvirt.libvirtError as error:
                is_over = self.running is None or self.running.poll() is not None
                if is_over or time.monotonic() > give_up_at:
                    raise AssertionError(self._complaint(error)) from error
                time.sleep(0.1)  # noqa: TID251  # it says to no one when it is ready
            else:
                return

    def _complaint(self, error: Exception) -> str:
        said = (self.folder / "output").read_text()[-2000:]
        return f"libvirt of {self.name} did not start: {error}\n{said}"

    def kill(self) -> None:
        """As a crash would: guests run on."""
        assert self.running is not None
        self.running.kill()
        self.running.wait()

    def end(self) -> None:
        """With its guests, and all else in its namespace."""
        listed = subprocess.run(
            ["ip", "netns", "pids", self.namespace], capture_output=True, text=True, check=False
        )
        for pid in listed.stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        if self.running is not None:
            self.running.wait()


@contextlib.contextmanager
def lab_hosts(folder: Path) -> Iterator[tuple[str, dict[str, LabHost]]]:
    """The namespace of the service, and the hosts, with libvirts that answer."""
    with contextlib.ExitStack() as stack:
        service = _namespace(stack, f"fw{os.getpid()}-service")
        hosts = {
            name: LabHost(
                name=name,
                namespace=_namespace(stack, f"fw{os.getpid()}-{name}"),
                address=f"10.99.0.{number}",
                folder=folder / name,
            )
            for number, name in enumerate(NAMES, 1)
        }
        _connect(service, hosts)
        addresses = {host.name: host.address for host in hosts.values()}
        for number, host in enumerate(hosts.values(), 1):
            host.prepare(addresses, number=number)
            stack.callback(host.end)
            host.start()
        for host in hosts.values():
            host.wait_until_ready()
        yield service, hosts


def _namespace(stack: contextlib.ExitStack, name: str) -> str:
    ip("netns", "add", name)
    stack.callback(ip, "netns", "del", name)
    ip("-n", name, "link", "set", "lo", "up")
    return name


def _connect(service: str, hosts: dict[str, LabHost]) -> None:
    """One network of guests, which the service is on too, and one between the hosts."""
    _bridge(service)
    ip("-n", service, "addr", "add", "10.77.0.1/24", "dev", "br0")
    ip("-n", service, "addr", "add", f"{METADATA}/32", "dev", "br0")
    for host in hosts.values():
        _bridge(host.namespace)
        ends = (f"to-{host.name}", "guests")
        _cable(service, ends[0], host.namespace, ends[1])
        ip("-n", service, "link", "set", ends[0], "master", "br0")
        ip("-n", host.namespace, "link", "set", ends[1], "master", "br0")
    first, second = hosts.values()
    _cable(first.namespace, "moves", second.namespace, "moves")
    for host in hosts.values():
        ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", "moves")


def _bridge(namespace: str) -> None:
    ip("-n", namespace, "link", "add", "br0", "type", "bridge")
    ip("-n", namespace, "link", "set", "br0", "up")


def _cable(one: str, one_end: str, other: str, other_end: str) -> None:
    ends = (one_end, "netns", one, "type", "veth", "peer", "name", other_end, "netns", other)
    ip("link", "add", *ends)
    ip("-n", one, "link", "set", one_end, "up")
    ip("-n", other, "link", "set", other_end, "up")
