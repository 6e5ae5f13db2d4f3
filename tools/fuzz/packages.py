"""Where the fuzzers are: their own environment, .venv-fuzz, because few need them."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


def are_installed() -> bool:
    return (_site_packages() / "schemathesis").exists()


def environment() -> Mapping[str, str]:
    """Packages of .venv-fuzz, which has atheris and schemathesis, and then those of this Python."""
    return {**os.environ, "PYTHONPATH": f"{_site_packages()}{os.pathsep}{ROOT}"}


def _site_packages() -> Path:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return ROOT / ".venv-fuzz" / "lib" / version / "site-packages"
