"""`python -m tools.mutants.machine`: fails unless each edit is caught, or explained."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.arguments import at_least_one
from tools.mutants.machine import explanations
from tools.mutants.machine.edits import Edit, edits_of
from tools.mutants.machine.explanations import BadExplanationError, Judgement, Key, key_of
from tools.mutants.machine.targets import TARGETS, Target
from tools.mutants.machine.trials import Trial, TrialError, UneditedTestsFailError, try_all

LEAST: Final = 95.0
"""The score that each module must have, in percent. What is explained counts as survived."""


def main(
    arguments: Sequence[str] | None = None,
    *,
    targets: Sequence[Target] = TARGETS,
    explained_in: Path = explanations.FILE,
) -> int:
    options = _parser(targets).parse_args(arguments)
    began = time.monotonic()
    try:
        read = explanations.read(explained_in)
        explained = {key: why for key, why in read.items() if _is_chosen(key, options)}
        chosen = {target: _chosen(target, options) for target in targets}
        trials = _try_chosen(chosen, options, explained)
    except BadExplanationError as error:
        _say(str(error))
        return 2
    except UneditedTestsFailError as error:
        _say(f"the tests fail without any edit, so they can judge none:\n{error}")
        return 2
    except TrialError as error:
        _say(f"an edit can't be tried: {error}")
        return 2
    judgement = explanations.judge(
        (edit for edits in chosen.values() for edit in edits),
        caught=(trial.edit for trial in trials if trial.by is not None),
        survived=(trial.edit for trial in trials if trial.by is None),
        explained=explained,
    )
    rows = _rows(trials, explained)
    if options.json:
        print(json.dumps({"modules": rows, "survivors": _survivors(trials, explained)}, indent=2))
    else:
        _print_table(rows, time.monotonic() - began)
    _say_what_is_stale(judgement, trials)
    is_whole = not options.function and options.part == (1, 1)
    low = [row for row in rows if float(str(row["score"])) < LEAST and is_whole]
    for row in low:
        _say(f"{row['module']} has {row['score']} %, and needs {LEAST:.0f} %")
    return 0 if judgement.is_clean and not low else 1


def _parser(targets: Sequence[Target]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants.machine",
        description="Make every small wrong edit there is; each must be caught, or explained.",
    )
    modules = [module for target in targets for module in target.modules]
    parser.add_argument(
        "--module",
        action="append",
        choices=modules,
        metavar="FILE",
        help="only edits of this module, such as core/notice.py; repeatable",
    )
    parser.add_argument("--function", metavar="NAME", help="only edits of functions of this name")
    parser.add_argument(
        "--part",
        type=_part,
        default=(1, 1),
        metavar="I/N",
        help="only every Nth edit, from the Ith on: a long run in pieces",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--parallel", type=at_least_one, default=2, metavar="N", help="trials at a time"
    )
    return parser


def _part(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 2/3")
    return int(part), int(parts)


def _is_chosen(edit: Edit | Key, options: argparse.Namespace) -> bool:
    if options.module and edit.module not in options.module:
        return False
    return not options.function or options.function in edit.where.split(".")


def _chosen(target: Target, options: argparse.Namespace) -> list[Edit]:
    return [
        edit
        for module in target.modules
        if not options.module or module in options.module
        for edit in edits_of(target.source / module, module)
        if _is_chosen(edit, options)
    ]


def _try_chosen(
    chosen: Mapping[Target, Sequence[Edit]],
    options: argparse.Namespace,
    explained: Mapping[Key, str],
) -> list[Trial]:
    trials: list[Trial] = []
    part, parts = options.part
    for target, edits in chosen.items():
        own = edits[part - 1 :: parts]
        if not own:
            continue
        _say(f"{len(own)} edits, tried with {' '.join(target.tests)}")
        with tempfile.TemporaryDirectory(prefix="forewarned-mutants-") as folder:
            # Where pytest puts what tests write: a test that is cut short leaves it there.
            os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
            for count, trial in enumerate(try_all(target, own, parallel=options.parallel), 1):
                trials.append(trial)
                if trial.by is None and key_of(trial.edit) not in explained:
                    _say(_diff(trial))
                if count % 100 == 0:
                    _say(f"{count}/{len(own)}")
    return trials


def _rows(trials: Sequence[Trial], explained: Mapping[Key, str]) -> list[dict[str, object]]:
    rows = []
    for module in dict.fromkeys(trial.edit.module for trial in trials):
        own = [trial for trial in trials if trial.edit.module == module]
        caught = sum(trial.by is not None for trial in own)
        told = sum(trial.by is None and key_of(trial.edit) in explained for trial in own)
        # Rounded down: 95 % means 95 %.
        score = int(1000 * caught / len(own)) / 10
        rows.append(
            {
                "module": module,
                "edits": len(own),
                "caught": caught,
                "explained": told,
                "survived": len(own) - caught - told,
                "score": score,
            }
        )
    return rows


def _survivors(trials: Sequence[Trial], explained: Mapping[Key, str]) -> list[dict[str, object]]:
    return [
        {
            **key_of(trial.edit)._asdict(),
            "line": trial.edit.line,
            "is_run": trial.is_run,
            "why": explained.get(key_of(trial.edit)),
        }
        for trial in trials
        if trial.by is None
    ]


def _print_table(rows: Sequence[Mapping[str, object]], seconds: float) -> None:
    print(f"\n{'module':<28} {'edits':>6} {'caught':>7} {'explained':>10} {'survived':>9}  score")
    for row in rows:
        print(
            f"{row['module']:<28} {row['edits']:>6} {row['caught']:>7} {row['explained']:>10}"
            f" {row['survived']:>9}  {row['score']} %"
        )
    edits, caught = (sum(int(str(row[name])) for row in rows) for name in ("edits", "caught"))
    print(f"\n{caught} of {edits} caught, in {seconds:.0f} s")


def _say_what_is_stale(judgement: Judgement, trials: Sequence[Trial]) -> None:
    by = {key_of(trial.edit): trial.by for trial in trials}
    for key in judgement.caught:
        _say(f"{key.module}, {key.where}: explained as a survivor, but caught by {by[key]}:")
        _say(f"  - {key.old}\n  + {key.new}")
    for key in judgement.vanished:
        _say(f"{key.module}, {key.where}: explained as a survivor, but there is no such edit:")
        _say(f"  - {key.old}\n  + {key.new}")


def _diff(trial: Trial) -> str:
    edit = trial.edit
    fate = "survived" if trial.is_run else "survived, no test runs it"
    return f"{edit.module}:{edit.line} {edit.where}: {fate}\n  - {edit.old}\n  + {edit.new}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
