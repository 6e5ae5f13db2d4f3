"""`python -m tools.fuzz.guided TARGET SECONDS CORPUS`: one target, for so long, led by coverage.

Run by `python -m tools.fuzz`, with the packages of .venv-fuzz. It ends with the first defect, whose
input is beside the corpus.
"""

import logging
import sys

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]  # in .venv-fuzz

with atheris.instrument_imports(include=["forewarned"]):
    from tools.fuzz.catalog import load


def main(name: str, seconds: str, corpus: str) -> None:
    with atheris.instrument_imports(include=["forewarned"]):
        target = load(name)
    # What is wrong with an input is not news here.
    logging.getLogger().addHandler(logging.NullHandler())
    limits = (f"-max_total_time={seconds}", "-max_len=4096", "-timeout=20", "-rss_limit_mb=2048")
    kept = f"-artifact_prefix={corpus}."
    atheris.Setup([sys.argv[0], *limits, kept, "-print_final_stats=1", corpus], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
