"""The kernel's switch, of which a file takes the place. `tests/end_to_end` has the real one."""

from pathlib import Path

from forewarned.runtime.listeners.port_marks import why_unreadable


def test_the_switch_is_turned_on(tmp_path: Path) -> None:
    switch = tmp_path / "tcp_fwmark_accept"
    switch.write_text("0\n")

    why = why_unreadable(switch)

    assert why is None
    assert switch.read_text() == "1"


def test_a_kernel_without_the_switch_can_not_tell_ports_apart(tmp_path: Path) -> None:
    """S17."""
    why = why_unreadable(tmp_path / "none")

    assert why == "this kernel marks no connections: use Linux, or --identity address"


def test_a_switch_that_can_not_be_used_is_said_with_what_to_do(tmp_path: Path) -> None:
    """S17."""
    why = why_unreadable(tmp_path)

    assert why is not None
    assert "sysctl -w net.ipv4.tcp_fwmark_accept=1" in why
