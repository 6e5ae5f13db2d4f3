"""`python -m tools.release [KIND…]`: build into dist/. What was there of that kind is replaced."""

import argparse
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tools.release.deb import build_agent_deb, build_server_deb
from tools.release.python_distributions import ROOT, build_sdist, build_wheel
from tools.release.pyz import build_pyz

KINDS: Final[Mapping[str, tuple[str, Callable[[Path], Path]]]] = {
    "wheel": ("forewarned-*.whl", build_wheel),
    "sdist": ("forewarned-*.tar.gz", build_sdist),
    "pyz": ("forewarned-agent.pyz", build_pyz),
    "agent-deb": ("forewarned-agent_*.deb", build_agent_deb),
    "server-deb": ("forewarned-server_*.deb", build_server_deb),
}
ANYWHERE: Final = ("wheel", "sdist", "pyz")
"""What needs no more than Python to be built."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="a folder; dist/")
    options = parser.parse_args()
    if unknown := set(options.kinds) - KINDS.keys():
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    options.into.mkdir(parents=True, exist_ok=True)
    for kind in options.kinds or ANYWHERE:
        pattern, build = KINDS[kind]
        for old in options.into.glob(pattern):
            old.unlink()
        built = build(options.into)
        print(f"{hashlib.sha256(built.read_bytes()).hexdigest()}  {built.name}", flush=True)


if __name__ == "__main__":
    main()
