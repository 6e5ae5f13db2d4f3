"""Mutants of how a server is run: who reaches an emulator, backups, what it begins with."""

from typing import Final

from tools.mutants.mutant import Mutant

_SETTINGS: Final = "tests/runtime/settings/test_listeners.py"
_BACKUP: Final = "tests/cli/stores/test_backup.py"
_STARTUP: Final = "tests/runtime/test_startup_files.py"

OPERATIONS: Final = (
    Mutant(
        name="emulator-open-to-all",
        file="metadata/http/peers.py",
        old="return is_local or self._access is EmulatorAccess.NETWORK",
        new="return True",
        breaks="S4: every caller of an emulator can be any VM, though no one said so",
        tests=("tests/metadata/test_callers.py",),
    ),
    Mutant(
        name="service-open-to-network",
        file="runtime/settings/conflicts.py",
        old="if settings.emulator_access is not EmulatorAccess.LOOPBACK:",
        new="if False:",
        breaks="S4: a service starts with a setting by which callers choose their VM",
        tests=(_SETTINGS,),
    ),
    Mutant(
        name="network-open-by-default",
        file="runtime/settings/conflicts.py",
        old='or origin["control_access"] != DEFAULT',
        new="or True",
        breaks="S12: an emulator on a network is open to it without anyone having said so",
        tests=(_SETTINGS,),
    ),
    Mutant(
        name="restore-not-declared",
        file="storage/backup/sqlite_copy.py",
        old="marker.declare_restored()",
        new="pass",
        breaks="I7, F17: only the lack of files beside it tells a restored store from a new one",
        tests=(_BACKUP,),
    ),
    Mutant(
        name="damaged-backup-restored",
        file="storage/backup/directory.py",
        old="_refuse_changed(place / name, expected)",
        new="pass",
        breaks="S17: a backup that has changed since is restored",
        tests=(_BACKUP,),
    ),
    Mutant(
        name="damaged-store-backed-up",
        file="storage/backup/sqlite_copy.py",
        old='if found != ["ok"] or foreign is not None:',
        new="if foreign is not None:",
        breaks="S17: a damaged store is backed up as if it were sound",
        tests=(_BACKUP,),
    ),
    Mutant(
        name="steps-taken-again",
        file="control/startup/application.py",
        old="begun = [(each, await _steps_taken(each, use_cases)) for each in step_files]",
        new="begun = [(each, 0) for each in step_files]",
        breaks="I23: a restart schedules the events of start-up files once more",
        tests=(_STARTUP,),
    ),
    Mutant(
        name="steps-not-rehearsed",
        file="control/startup/application.py",
        old="await _make_events(step, rehearsed, use_cases)",
        new="pass",
        breaks="S17: a start-up file is half applied when one of its steps is refused",
        tests=(_STARTUP,),
    ),
)
