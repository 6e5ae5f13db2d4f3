"""One agent per state directory: two would each run the hooks of every event."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from forewarned.security.files import InUseError, locked_or_refused, private_directory


class StateInUseError(Exception):
    """Another agent uses the same directory."""

    def __init__(self, state: Path, holder: str) -> None:
        who = f" (process {holder})" if holder.isdigit() else ""
        super().__init__(
            f"another agent{who} is using {state}: two agents would run every hook twice"
        )
        self.state = state


class UnusableStateError(Exception):
    """The directory can't be made, or nothing can be written there."""

    def __init__(self, state: Path, why: str) -> None:
        super().__init__(f"can't use the state directory {state}: {why}")
        self.state = state


@contextlib.contextmanager
def sole_agent(state: Path) -> Iterator[None]:
    """Hold the directory."""
    with contextlib.ExitStack() as stack:
        try:
            private_directory(state)
            stack.enter_context(locked_or_refused(state / "lock"))
        except InUseError as error:
            raise StateInUseError(state, error.holder) from error
        except OSError as error:
            raise UnusableStateError(state, error.strerror or str(error)) from error
        yield
