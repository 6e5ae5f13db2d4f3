"""Mutants of what acts on real VMs. Each would act on one twice, or too early."""

from typing import Final

from tools.mutants.mutant import Mutant

_DECISION: Final = "tests/actuators/test_decision.py"
_ATTEMPT: Final = "tests/actuators/test_attempt.py"
_COMMAND: Final = "tests/actuators/command"

_TASKS: Final = ("tests/core/test_tasks.py", "tests/service/lifecycle/test_tasks.py")

ACTUATORS: Final = (
    Mutant(
        name="old-attempt-heard",
        file="core/tasks.py",
        old="task.state not in _HELD or task.attempt != attempt:",
        new="task.state not in _HELD or task.attempt < attempt:",
        breaks="I22: an actuator that was taken over from reports, and is believed",
        tests=_TASKS,
    ),
    Mutant(
        name="claim-keeps-attempt",
        file="core/tasks.py",
        old="attempt=task.attempt + 1,",
        new="attempt=max(task.attempt, 1),",
        breaks="I22: two actuators carry out the same attempt",
        tests=_TASKS,
    ),
    Mutant(
        name="guest-not-awaited",
        file="service/lifecycle/guest_returns.py",
        old="_UNDER_WAY: Final = timedelta(seconds=2)",
        new="_UNDER_WAY: Final = timedelta(seconds=0)",
        breaks="I22: a read from before the restart counts as the guest's return",
        tests=_TASKS,
    ),
    Mutant(
        name="task-outlives-event",
        file="storage/relational/tasks.py",
        old="if not ended.issuperset(fact.event.resources):",
        new="if ended:",
        breaks="I22: an actuator keeps the task of an event that is over",
        tests=_TASKS,
    ),
    Mutant(
        name="foreign-work-taken-for-own",
        file="actuators/attempt.py",
        old="before=case.sighting if is_busy_otherwise else case.before,",
        new="before=case.before,",
        breaks="I22: a task counts as done by what the platform was at before it was begun",
        tests=("tests/actuators/test_attempt.py",),
    ),
    Mutant(
        name="vm-taken-from-its-holder",
        file="storage/relational/tasks.py",
        old="          AND held.claimable_at > :now\n",
        new="          AND held.claimable_at < :now\n",
        breaks="I22: what is done for an event that was completed by hand counts for the next one",
        tests=("tests/storage/test_contract_tasks.py",),
    ),
    Mutant(
        name="doubt-repeated",
        file="actuators/decision.py",
        old="if _all_show_no_effect(case) or case.procedure.on_doubt is OnDoubt.REPEAT:",
        new="if _all_show_no_effect(case) or case.procedure.on_doubt is not None:",
        breaks="I22: a VM that may have been restarted is restarted again",
        tests=(_ATTEMPT,),
    ),
    Mutant(
        name="vague-witness-believed",
        file="actuators/decision.py",
        old="return is_same and (seen.conclusive or by_switch) and seen.power is before.power",
        new="return is_same and seen.power is before.power",
        breaks="I22: a witness that not every restart changes proves that there was none",
        tests=(_DECISION,),
    ),
    Mutant(
        name="job-ignored",
        file="actuators/decision.py",
        old="if seen.job and not case.aborted:",
        new="if seen.job and case.begun and not case.aborted:",
        breaks="I22: a VM that is being moved is acted on",
        tests=(_DECISION,),
    ),
    Mutant(
        name="harm-retried",
        file="actuators/decision.py",
        old="return _is_in_place(before, seen) and seen.power is before.power",
        new="return _is_in_place(before, seen)",
        breaks="I22: a VM that went down in a failed move is acted on again without a person",
        tests=(_DECISION,),
    ),
    Mutant(
        name="act-before-begin",
        file="actuators/attempt.py",
        old="            await self._begin(case.before)\n        # Asked since",
        new="            self._has_begun = True\n        # Asked since",
        breaks="I22: a VM is interrupted before that is durable",
        tests=(_ATTEMPT,),
    ),
    Mutant(
        name="lease-not-confirmed",
        file="actuators/attempt.py",
        old="while self._at.monotonic() - self._confirmed > _SURE:",
        new="while self._at.monotonic() - self._confirmed > 100 * _SURE:",
        breaks="I22: an actuator that stood still acts on a VM that is another's by now",
        tests=(_ATTEMPT,),
    ),
    Mutant(
        name="old-result-counts",
        file="actuators/command/records.py",
        old='exit_code = result.get("exit_code") if result.get("key") == key else None',
        new='exit_code = result.get("exit_code")',
        breaks="I22: an earlier task's program counts for this task, which is not carried out",
        tests=(_COMMAND,),
    ),
    Mutant(
        name="lock-not-passed-on",
        file="actuators/command/driver.py",
        old="pass_fds=[lock],",
        new="pass_fds=[],",
        breaks="I22: a program that runs is not seen by the next actuator, which starts another",
        tests=(_COMMAND,),
    ),
)
