"""One VM always meets the same poller: the kernel chooses by the address a connection comes from.

Two pollers hear of a change a moment apart. A VM that met now one and now the other could see its
incarnation fall; by the kernel's own choice, which goes by port as well, it would.
"""

import ctypes
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

# From linux/filter.h and linux/bpf_common.h: classic BPF, which needs no privilege.
LOAD_WORD: Final = 0x20
LOAD_BYTE: Final = 0x30
SHIFT_RIGHT: Final = 0x74
XOR_X: Final = 0xAC
MODULO: Final = 0x94
JUMP_IF_EQUAL: Final = 0x15
COPY_TO_X: Final = 0x07
RETURN_A: Final = 0x16
NETWORK_HEADER: Final = 0xFFF0_0000
"""Added to an offset: counted from the IP header on. (SKF_NET_OFF, which is negative.)"""

_SO_ATTACH_REUSEPORT_CBPF: Final = 51


class Instruction(NamedTuple):
    code: int
    value: int
    skip_if_true: int = 0
    skip_if_false: int = 0


def program(sockets: int) -> list[Instruction]:
    """Which of the sockets takes a connection: its source address, modulo their number."""
    choose = [Instruction(MODULO, sockets), Instruction(RETURN_A, 0)]
    by_ipv4 = [Instruction(LOAD_WORD, NETWORK_HEADER + 12), *choose]
    by_ipv6 = [Instruction(LOAD_WORD, NETWORK_HEADER + 8)]
    for offset in (12, 16, 20):
        by_ipv6 += [
            Instruction(COPY_TO_X, 0),
            Instruction(LOAD_WORD, NETWORK_HEADER + offset),
            Instruction(XOR_X, 0),
        ]
    return [
        Instruction(LOAD_BYTE, NETWORK_HEADER),
        Instruction(SHIFT_RIGHT, 4),
        Instruction(JUMP_IF_EQUAL, 6, skip_if_true=len(by_ipv4)),
        *by_ipv4,
        *by_ipv6,
        *choose,
    ]


def packed(instructions: Sequence[Instruction]) -> bytes:
    return b"".join(
        struct.pack("=HBBI", one.code, one.skip_if_true, one.skip_if_false, one.value)
        for one in instructions
    )


def steer(listeners: Sequence[socket.socket]) -> None:
    """Let them share connections by source address. Raises OSError where that can't be.

    They listen at one address with SO_REUSEPORT, in this order, and none is closed before all are.
    """
    if sys.platform != "linux":
        raise OSError("only Linux lets connections be steered")
    instructions = program(len(listeners))
    code = ctypes.create_string_buffer(packed(instructions))
    whole = struct.pack("HP", len(instructions), ctypes.addressof(code))
    listeners[0].setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, whole)
