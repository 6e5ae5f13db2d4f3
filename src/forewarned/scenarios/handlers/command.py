"""The command line and the environment that a handler is started with. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from forewarned.scenarios.ports import Endpoint

ENDPOINT_VARIABLE: Final = "FOREWARNED_ENDPOINT"
FOLDER_VARIABLES: Final = ("TMPDIR", "STATE_DIRECTORY", "RUNTIME_DIRECTORY")
"""Where programs look for a place for their files; the last two are systemd's."""
# A scenario that wants any sets them: what a developer's shell has must not decide the others.
PROXY_VARIABLES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
PLACEHOLDERS: Final = ("{endpoint}", "{vm}", "{folder}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    words: Sequence[str]
    """May have placeholders anywhere."""
    endpoint_variable: str | None = None
    """A variable of the handler's own that is to hold the endpoint's URL."""

    @property
    def has_endpoint(self) -> bool:
        """Whether the handler is told where the service is."""
        return self.endpoint_variable is not None or any("{endpoint}" in w for w in self.words)

    def filled(self, at: Endpoint) -> list[str]:
        """With the values of the placeholders. Other braces stay as they are."""
        values = dict(zip(PLACEHOLDERS, (at.url, at.vm, str(at.folder)), strict=True))
        filled = []
        for word in self.words:
            for placeholder, value in values.items():
                word = word.replace(placeholder, value)  # noqa: PLW2901
            filled.append(word)
        return filled

    def variables(self, at: Endpoint) -> Mapping[str, str | None]:
        """What differs from this process's environment; None removes."""
        removed = [spelt for name in PROXY_VARIABLES for spelt in (name, name.upper())]
        own = {} if self.endpoint_variable is None else {self.endpoint_variable: at.url}
        return {
            **dict.fromkeys(removed),
            **dict.fromkeys(FOLDER_VARIABLES, str(at.folder)),
            ENDPOINT_VARIABLE: at.url,
            **own,
            **at.environment,
        }
