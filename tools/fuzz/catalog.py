"""All targets, by name, with the modules that have them."""

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, cast

from tools.fuzz.target import Target

TARGETS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "requests": "the parser of VMs' requests",
        "conversation": "what VMs send, and what they are answered",
        "expressions": "templates of ARM and their expressions",
        "toml": "settings, fleet, agent and scenario files",
        "frames": "the feed between writer and pollers",
    }
)
"""And what each of them is about."""


def load(name: str) -> Target:
    """Imported when it is wanted: atheris looks at what is imported after it."""
    module = importlib.import_module(f"tools.fuzz.targets.{name}")
    # A module with these names is one, and mypy can't know which module it is.
    return cast(Target, module)
