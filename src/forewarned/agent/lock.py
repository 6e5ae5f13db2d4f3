"""One agent to a state directory: two would each run the hooks of every event."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


class StateInUseError(Exception):
    """Another agent works with the same directory."""

    def __init__(self, state: Path, holder: str) -> None:
        who = f" (process {holder})" if holder.isdigit() else ""
        super().__init__(f"another agent{who} works with {state}: two would run every hook twice")
        self.state = state


class UnusableStateError(Exception):
    """The directory can't be made, or nothing can be written there."""

    def __init__(self, state: Path, why: str) -> None:
        super().__init__(f"can't use the state directory {state}: {why}")
        self.state = state


@contextlib.contextmanager
def sole_agent(state: Path) -> Iterator[None]:
    """Hold the directory. The kernel lets go of it when the holder dies, however it dies."""
    # Here, because a rehearsal needs none and Windows has none.
    import fcntl  # noqa: PLC0415

    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The file stays: removing it would be a race. Hooks must not inherit it, or one that
        # outlives the agent would keep the next agent out: Python's files never are inherited.
        file = (state / "lock").open("a+")
    except OSError as error:
        raise UnusableStateError(state, error.strerror or str(error)) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise StateInUseError(state, file.read().strip()) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
