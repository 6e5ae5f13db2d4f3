"""The kernel's switch for port marks: while it is off, no connection says which port it is from."""

from pathlib import Path
from typing import Final

SWITCH: Final = Path("/proc/sys/net/ipv4/tcp_fwmark_accept")
"""Of the network namespace that this process is in, for IPv6 too."""


def why_unreadable(switch: Path = SWITCH) -> str | None:
    """Turn the switch on if it is off. Returns why that can't be done; None if it is on now."""
    try:
        if switch.read_text().strip() == "0":
            switch.write_text("1")
    except FileNotFoundError:
        return "this kernel marks no connections: use Linux, or --identity address"
    except OSError as error:
        return (
            "the kernel does not pass port marks on to connections, and this process may not"
            f" change that ({error.strerror}): run `sysctl -w net.ipv4.tcp_fwmark_accept=1` as root"
        )
    return None
