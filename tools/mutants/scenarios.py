"""Mutants of scenarios, the examination and recordings.

Each would pass a handler that fails, fail one that passes, or tell what was to be kept.
"""

from typing import Final

from tools.mutants.mutant import Mutant

_EXPECTATIONS: Final = ("tests/scenarios/test_expectations.py",)
_EXAMINATION: Final = "tests/scenarios/test_examination.py"
_COMMAND: Final = "tests/cli/exam/test_command.py"
_RECORDINGS: Final = ("tests/recordings",)

SCENARIOS: Final = (
    Mutant(
        name="second-approval-passed",
        file="scenarios/judgement/approvals.py",
        old="            if again:\n",
        new="            if len(again) > 1:\n",
        breaks="I12: a handler that approves an event twice passes",
        tests=_EXPECTATIONS,
    ),
    Mutant(
        name="refused-approval-counted",
        file="scenarios/judgement/evidence.py",
        old="if pair[1].is_answered]",
        new="if pair[1].approves]",
        breaks="I14: an approval that was refused counts as one",
        tests=_EXPECTATIONS,
    ),
    Mutant(
        name="others-requests-counted",
        file="scenarios/judgement/evidence.py",
        old="            and (each.fact.vm is None or each.fact.vm.casefold() == own)\n",
        new="",
        breaks="I9: what another VM asks passes for the handler's",
        tests=_EXPECTATIONS,
    ),
    Mutant(
        name="patience-beyond-limit",
        file="scenarios/judgement/approvals.py",
        old="deadline = min(deadline, anchor.ended + expectation.limit)",
        new="deadline = max(deadline, anchor.ended + expectation.limit)",
        breaks="I2: a slow machine gets more notice than a Spot VM has",
        tests=_EXPECTATIONS,
    ),
    Mutant(
        name="open-at-the-end-passes",
        file="scenarios/expectations.py",
        old="return _UNREACHED if seen.is_over and verdict.standing is Standing.OPEN else verdict",
        new="return Verdict(Standing.HELD) if seen.is_over and verdict.why == '' else verdict",
        breaks="I12: what could not be seen passes",
        tests=_EXPECTATIONS,
    ),
    Mutant(
        name="grade-over-a-gap",
        file="scenarios/examination.py",
        old="            return reached\n        reached = grade\n",
        new="            continue\n        reached = grade\n",
        breaks="I30: a handler that fails an essential scenario gets a grade",
        tests=(f"{_EXAMINATION}::test_a_grade_needs_all_of_it_and_all_of_the_grades_before",),
    ),
    Mutant(
        name="silence-played-to-the-end",
        file="scenarios/examination.py",
        old="if ended >= _ENOUGH and not is_served:",
        new="if False:",
        breaks="I20: the examination of a handler that asks nothing takes minutes to say so",
        tests=(
            f"{_COMMAND}::test_a_silent_handler_is_not_examined_further_and_told_what_to_check",
        ),
    ),
    Mutant(
        name="real-endpoint-in-reach",
        file="cli/exam/command.py",
        old="        if not is_told:\n",
        new="        if False:\n",
        breaks="S4: a handler under examination may approve real events of the machine",
        tests=(f"{_COMMAND}::test_what_can_not_be_examined_is_refused_with_the_choices_there_are",),
    ),
    Mutant(
        name="recording-repeats",
        file="recordings/recorder.py",
        old="        return outcome.status, outcome.content\n",
        new="        return outcome.status, outcome.content, outcome.at\n",
        breaks="I6: a line for each poll, which fills the disk of a VM",
        tests=_RECORDINGS,
    ),
    Mutant(
        name="recording-beyond-limit",
        file="recordings/file.py",
        old="if self._length + len(line) > self._limit:",
        new="if self._length > self._limit:",
        breaks="S9: a recording grows above its limit",
        tests=_RECORDINGS,
    ),
    Mutant(
        name="half-line-kept",
        file="recordings/file.py",
        old="            os.ftruncate(file, 0 if found is None else found.length)\n",
        new="",
        breaks="I23: after a kill, half a line is in the middle of the recording",
        tests=_RECORDINGS,
    ),
    Mutant(
        name="names-in-texts-kept",
        file="recordings/anonymity.py",
        old="        return mentions.sub(lambda found: self.name(found[0]), replaced)\n",
        new="        return replaced\n",
        breaks="S14: an anonymous recording has the names of VMs in its descriptions",
        tests=_RECORDINGS,
    ),
)
