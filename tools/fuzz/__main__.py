"""`python -m tools.fuzz`: fuzz every target for an hour, or for as long as is said."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.fuzz.catalog import TARGETS, load
from tools.fuzz.packages import ROOT, are_installed, environment

KEPT: Final = ROOT / ".fuzz"
"""Inputs that reach something, one folder for each target: the next run begins with them."""
V1: Final = "v1"
_HOUR: Final = 3600


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if not are_installed():
        sys.exit("the fuzzers are not installed: run `make fuzz`")
    failed = [name for name in options.target or (*TARGETS, V1) if not _fuzz(name, options.seconds)]
    if failed:
        print(
            f"\nDefects in: {', '.join(failed)}. Write a test of what is wrong, then mend it, and"
        )
        print("add the input to the examples of its target.", flush=True)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz",
        description="Give the product's readers inputs that no one thought of.",
    )
    parser.add_argument(
        "--target", action="append", choices=[*TARGETS, V1], help="only this one; repeatable"
    )
    parser.add_argument(
        "--seconds",
        type=int,
        default=_HOUR,
        metavar="N",
        help="for each; an hour by default",
    )
    return parser


def _fuzz(name: str, seconds: int) -> bool:
    print(f"\n--- {name}: {TARGETS.get(name, 'the control API by its description')}", flush=True)
    if name == V1:
        command = ["tools.fuzz.v1", str(seconds), str(_folder(name))]
    else:
        command = ["tools.fuzz.guided", name, str(seconds), str(_corpus(name))]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment(), check=False
    )
    print(f"--- {name}: {'no defect' if done.returncode == 0 else 'A DEFECT'}", flush=True)
    return done.returncode == 0


def _corpus(name: str) -> Path:
    """The folder of a target, with its examples in it."""
    folder = _folder(name)
    for number, example in enumerate(load(name).EXAMPLES):
        (folder / f"example-{number}").write_bytes(example)
    return folder


def _folder(name: str) -> Path:
    folder = KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    sys.exit(main())
