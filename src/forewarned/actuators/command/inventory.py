"""The VMs that a program of the operator's lists.

Invariant: a program that fails, or whose output can't be read to its end, lists nothing at all.
"""

from typing import Final

import msgspec

from forewarned.actuators.driver import DriverError
from forewarned.service.sources.listing import ListedVm, Listing
from forewarned.targets.errors import TargetError
from forewarned.targets.programs import run_program

_LONGEST: Final = 4 << 20
"""Bytes of output; some 20,000 VMs."""


class _ProgramListing(msgspec.Struct, forbid_unknown_fields=True):
    vms: tuple[ListedVm, ...]
    silent: dict[str, str] = {}


async def list_vms(argv: tuple[str, ...]) -> Listing:
    """Raises DriverError."""
    name = argv[0]
    try:
        ran = await run_program(argv, longest_output=_LONGEST)
    except TargetError as error:
        raise DriverError(str(error)) from error
    if ran.exit_code:
        raise DriverError(f"{name} {ran.last_words}")
    # What is longer has lost its beginning.
    if len(ran.stdout) >= _LONGEST:
        raise DriverError(f"{name} printed more than 4 MiB: list fewer VMs")
    try:
        found = msgspec.json.decode(ran.stdout, type=_ProgramListing)
    except msgspec.MsgspecError as error:
        raise DriverError(f"the output of {name} is not a listing: {error}") from error
    return Listing(vms=found.vms, silent=found.silent)
