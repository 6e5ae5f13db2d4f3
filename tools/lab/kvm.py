"""Whether guests can run on the processor itself, rather than be emulated."""

import os
import re
from functools import cache
from pathlib import Path
from typing import Final

_DEVICE: Final = Path("/dev/kvm")
_FLAGS: Final = re.compile(r"^flags\s*:.*\b(vmx|svm)\b", re.MULTILINE)


@cache
def has_kvm() -> bool:
    """The device alone says too little: some kernels have it for guests made for them only."""
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return False
    return _FLAGS.search(Path("/proc/cpuinfo").read_text()) is not None
