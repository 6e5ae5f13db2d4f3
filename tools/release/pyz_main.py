"""`__main__` of forewarned-agent.pyz: Python imports all but compiled modules from a zip itself.

Those are in the zip for each Python and machine that we support. The one that fits is handed to the
system's loader in memory, so no folder has to be writable, none is left behind, and a mount with
`noexec` does not matter. No syntax newer than Python 3.6: an older one gets a clear message.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - who runs this has chosen neither it nor us
    sys.exit(f"this needs Python 3.11 or later, and {sys.executable} is older: {sys.version}")

import importlib.abc
import importlib.machinery
import os
import re
import tempfile
import zipfile
from collections.abc import Sequence
from types import ModuleType

from typing_extensions import override

ARCHIVE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - the zip itself
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]


class CompiledModule(importlib.abc.Loader):
    """Loads one module of the zip."""

    def __init__(self, member: str) -> None:
        self._member = member

    @override
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        with zipfile.ZipFile(ARCHIVE) as archive:
            content = archive.read(self._member)
        try:
            return _loaded(spec.name, os.memfd_create(self._member), content)
        except (AttributeError, ImportError, OSError):
            # No memory files here, or none that may be executed: a file, gone when it is loaded.
            with tempfile.NamedTemporaryFile(suffix=SUFFIX) as file:
                return _loaded(spec.name, os.dup(file.fileno()), content, path=file.name)

    @override
    def exec_module(self, module: ModuleType) -> None:
        importlib.machinery.ExtensionFileLoader(module.__name__, ARCHIVE).exec_module(module)


class CompiledModules(importlib.abc.MetaPathFinder):
    """Finds what the zip has for this Python and this machine."""

    def __init__(self, members: Sequence[str]) -> None:
        self._members = members

    @override
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        stem = fullname.replace(".", "/")
        if stem + SUFFIX in self._members:
            return importlib.machinery.ModuleSpec(fullname, CompiledModule(stem + SUFFIX))
        if any(member.startswith(f"{stem}.cpython-") for member in self._members):
            sys.exit(f"this file has no {fullname} for this Python: {self._refusal()}")
        return None

    def _refusal(self) -> str:
        minors = re.findall(r"\.cpython-3(\d+)", " ".join(self._members))
        versions = ", ".join(f"3.{minor}" for minor in sorted(set(minors)))
        return (
            f"it is {sys.implementation.name} with {SUFFIX}, and the file runs on CPython"
            f" {versions}, on Linux, on x86-64 and ARM64. Elsewhere: pip install forewarned"
        )


def _loaded(name: str, file: int, content: bytes, path: str = "") -> ModuleType:
    with os.fdopen(file, "wb") as opened:
        opened.write(content)
        opened.flush()
        path = path or f"/proc/self/fd/{file}"
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        return loader.create_module(importlib.machinery.ModuleSpec(name, loader, origin=path))


def main() -> None:
    with zipfile.ZipFile(ARCHIVE) as archive:
        members = [name for name in archive.namelist() if name.endswith(".so")]
    sys.meta_path.insert(0, CompiledModules(members))

    from forewarned.cli import main as forewarned  # noqa: PLC0415 - which needs these modules

    forewarned()


if __name__ == "__main__":
    main()
