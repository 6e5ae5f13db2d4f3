"""Ports that nothing listens on, for servers that can't choose one themselves."""

import contextlib
import socket

from benchmarks.exchange import LOOPBACK


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for holder in held:
            holder.bind((LOOPBACK, 0))
        return [holder.getsockname()[1] for holder in held]
