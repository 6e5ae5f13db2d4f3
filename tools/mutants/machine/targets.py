"""Which modules are edited, and which tests have to notice."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Modules that the same tests are for."""

    modules: tuple[str, ...]
    """Below `source`."""
    tests: tuple[str, ...]
    """Below `root`. Only those that run without a server: each edit runs some of them."""
    root: Path = ROOT
    package: str = "forewarned"

    @property
    def source(self) -> Path:
        return self.root / "src" / self.package

    def import_name(self, module: str) -> str:
        return ".".join((self.package, *Path(module).with_suffix("").parts))


_CORE: Final = tuple(
    f"core/{name}.py"
    for name in (
        "lifecycle",
        "starting",
        "notice",
        "maintenance",
        "membership",
        "model",
        "tasks",
        "change",
        "transitions",
        "power",
        "rules",
        "descriptions",
        "ids",
        "copying",
        "errors",
    )
)

TARGETS: Final = (
    Target(modules=_CORE, tests=("tests/core",)),
    Target(modules=("storage/diff.py",), tests=("tests/storage/test_diff.py",)),
    Target(
        modules=("agent/plan.py", "agent/model.py", "agent/overlaps.py"),
        tests=(
            "tests/agent/test_plan.py",
            "tests/agent/test_model.py",
            "tests/agent/test_surroundings.py",
        ),
    ),
    Target(
        modules=("actuators/decision.py", "actuators/attempt.py"),
        tests=(
            "tests/actuators/test_decision.py",
            "tests/actuators/test_attempt.py",
            "tests/actuators/test_attempt_trouble.py",
            "tests/actuators/test_attempt_reports.py",
            "tests/actuators/test_attempt_silence.py",
        ),
    ),
    Target(
        modules=(
            "client/_protocol.py",
            "client/_retries.py",
            "client/_watch.py",
            "client/_changes.py",
        ),
        tests=(
            "tests/client/test_protocol.py",
            "tests/client/test_contact.py",
            "tests/client/test_retries.py",
            "tests/client/test_watch.py",
            "tests/client/test_changes.py",
        ),
    ),
)
