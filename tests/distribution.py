"""Which tests run in one worker: those of a module, or of several that share much."""

from typing import Final

# The library says nothing of its types.
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

TOGETHER: Final = ("tests/lab/", "tests/openstack/", "tests/end_to_end/test_az")
"""What these start for all of their tests, hypervisors or az, takes longer than most of the tests."""


class Distribution(LoadFileScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        shared = next((start for start in TOGETHER if nodeid.startswith(start)), None)
        return shared or nodeid.partition("::")[0]
