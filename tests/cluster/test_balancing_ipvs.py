"""The IPVS example of docs/several-nodes.md, on a hypervisor of its own kernel: a guest of QEMU.

Kernels of machines that run tests often have no IPVS, and Debian's for clouds has it. VMs and nodes
are network namespaces in the guest. The nodes are not Forewarned's: each says who asked it.
"""

import gzip
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.packages import find, give_up, need
from tools.lab import archive
from tools.lab.image import Image, image
from tools.lab.packages import NoLabError, need_programs, packed_files

GUIDE: Final = Path(__file__).resolve().parents[2] / "docs" / "several-nodes.md"
MODULES: Final = (
    *("llc", "stp", "bridge", "veth", "libcrc32c", "nf_defrag_ipv4", "nf_defrag_ipv6"),
    *("nf_conntrack", "ip_vs", "ip_vs_mh"),
)
"""In the order in which they need each other. A kernel may have some of them built in."""
COUNT: Final = 8
"""VMs."""
SECONDS: Final = 240
"""A guest without KVM, which not every machine has, takes its time."""
_INIT: Final = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /run /tmp /www/cgi-bin
exec </dev/null >/dev/ttyS0 2>&1
for module in {modules}; do insmod /lib/$module.ko; done

# The shell prefers its own, which knows no namespaces.
ip() {{ /usr/sbin/ip "$@"; }}

# A machine of its own: NAME ADDRESS GATEWAY BRIDGE
join() {{
    ip netns add $1
    ip link add $1 type veth peer name eth0 netns $1
    ip link set $1 master $4 up
    ip -n $1 link set lo up
    ip -n $1 address add $2/24 dev eth0
    ip -n $1 link set eth0 up
    ip -n $1 route add default via $3
}}
ip link set lo up
for bridge in br0 br1; do ip link add $bridge type bridge; ip link set $bridge up; done
ip address add 10.77.0.1/24 dev br0
ip address add 169.254.169.254/32 dev br0
ip address add 10.0.0.1/24 dev br1
echo 1 > /proc/sys/net/ipv4/ip_forward

printf '#!/bin/sh\\necho\\necho "FW answer $NODE to $REMOTE_ADDR"\\n' > /www/cgi-bin/who
chmod +x /www/cgi-bin/who
for node in 11 12; do
    join node$node 10.0.0.$node 10.0.0.1 br1
    NODE=10.0.0.$node ip netns exec node$node httpd -p 80 -h /www
done
for vm in {vms}; do join vm$vm 10.77.0.$vm 10.77.0.1 br0; done

{balance}
ask() {{
    echo "FW round $1"
    for vm in {vms}; do
        printf 'GET /cgi-bin/who HTTP/1.0\\r\\n\\r\\n' |
            ip netns exec vm$vm timeout 20 nc 169.254.169.254 80 | grep FW
    done
}}
ask both
ask again
{take_out}
ask without
{take_back}
ask back
echo "FW end"
poweroff -f
"""


@pytest.fixture(scope="module")
def guest() -> Image:
    """Its kernel and busybox are the lab's."""
    try:
        need_programs()
        return image()
    except NoLabError as error:
        give_up(str(error))


@pytest.mark.thorough
def test_ipvs_keeps_the_addresses_of_vms_and_moves_only_those_of_a_node_that_is_taken_out(
    guest: Image, tmp_path: Path
) -> None:
    [example] = re.findall(
        r"^### With IPVS\n.*?```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL | re.MULTILINE
    )
    *begin, take_out, take_back = example.splitlines()
    script = _INIT.format(
        modules=" ".join(MODULES),
        vms=" ".join(str(10 + vm) for vm in range(COUNT)),
        balance="\n".join(begin),
        take_out=take_out,
        take_back=take_back,
    )
    files = tmp_path / "files.gz"
    files.write_bytes(
        gzip.compress(archive.packed(_files(guest, script, tmp_path)), compresslevel=1)
    )

    said = subprocess.run(
        [
            *("qemu-system-x86_64", "-accel", "tcg", "-m", "256"),
            *("-display", "none", "-serial", "stdio", "-nic", "none", "-no-reboot"),
            *("-kernel", str(guest.kernel), "-initrd", str(files)),
            *("-append", "console=ttyS0 panic=-1 quiet"),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    ).stdout

    assert "FW end" in said, said
    both, again, without, back = (_answers(part) for part in said.split("FW round ")[1:])
    assert set(both) == {f"10.77.0.{10 + vm}" for vm in range(COUNT)}, said
    assert set(both.values()) == {"10.0.0.11", "10.0.0.12"}
    assert both == again == back
    assert without == dict.fromkeys(both, "10.0.0.12")


def _answers(said: str) -> dict[str, str]:
    """The node that answered, by the address that the node saw."""
    return {vm: node for node, vm in re.findall(r"FW answer (\S+) to (?:\[::ffff:)?([\d.]+)", said)}


def _files(guest: Image, script: str, folder: Path) -> Iterator[archive.Entry]:
    """Of packages that are downloaded to `folder`."""
    yield from map(archive.folder, ("bin", "dev", "lib", "lib64", "proc", "sys", "usr"))
    yield from map(archive.folder, ("lib/x86_64-linux-gnu", "usr/sbin"))
    yield archive.character_device("dev/console", 5, 1)
    yield archive.character_device("dev/ttyS0", 4, 64)
    yield archive.character_device("dev/null", 1, 3)
    yield archive.program("init", script.encode())
    busybox = dict(packed_files("busybox-static", folder))
    yield archive.program("bin/busybox", busybox.get("bin/busybox") or busybox["usr/bin/busybox"])
    for path, content in packed_files(guest.kernel.name, folder):
        if Path(path).stem in MODULES and path.endswith(".ko"):
            yield archive.program(f"lib/{Path(path).name}", content)
    programs = [need("ipvsadm"), find("ip") or ""]
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    for library in sorted(set(re.findall(r"(/lib\S+) \(0x", listed))):
        yield archive.program(library.removeprefix("/"), Path(library).read_bytes())
    for program in programs:
        yield archive.program(f"usr/sbin/{Path(program).name}", Path(program).read_bytes())
