"""Objects that only a garbage collection would free."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection comes meanwhile, and `left_behind` finds only what was made since it began."""
    gc.collect()
    # What other tests of this process still hold, such as a server of a module, is not looked at.
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def left_behind(*kinds: type) -> list[str]:
    """The names of the kinds, in order, each as often as there are such objects."""
    return sorted(type(each).__name__ for each in gc.get_objects() if isinstance(each, kinds))
