"""`[actuators.NAME]`: what may be written there, and the line of every mistake."""

from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.actuators import settings
from forewarned.actuators.decision import OnDoubt
from forewarned.actuators.driver import Effect
from forewarned.actuators.kinds import KINDS
from forewarned.actuators.settings import ActuatorSettingsError
from forewarned.actuators.slots import Limits
from forewarned.actuators.sources.table import SourceTable
from forewarned.actuators.table import ActuatorTable
from forewarned.config.mistakes import any_of
from forewarned.core.model import EventType


def read(tmp_path: Path, text: str) -> dict[str, ActuatorTable]:
    path = tmp_path / "forewarned.toml"
    path.write_text(text)
    return dict(settings.load(path).actuators)


def mistakes(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ActuatorSettingsError) as caught:
        read(tmp_path, text)
    return [each.removeprefix(f"{tmp_path}/") for each in caught.value.mistakes]


def test_a_server_without_actuators_has_none(tmp_path: Path) -> None:
    assert read(tmp_path, 'mode = "service"\n') == {}


def test_each_table_is_an_actuator(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        [actuators.scripts]
        driver = "command"
        hosts = ["hv-*", "old-1"]
        reboot = { argv = ["/usr/local/bin/vm-reboot"], timeout = "2m", retries = 3 }
        freeze = { argv = ["/usr/local/bin/vm-move", "--live"], on_doubt = "stop" }
        redeploy = { argv = ["/usr/local/bin/vm-move"] }
        check = ["/usr/local/bin/vm-is-up"]
        limits = { per_host = 1, total = 4 }
        dry_run = true

        [actuators.ticket]
        driver = "webhook"
        url = "https://ops.example/hook"
        secret_file = "hook.key"

        [actuators.rack1]
        driver = "remote"
        hosts = ["rack1-*"]
        """,
    )

    assert list(found) == ["scripts", "ticket", "rack1"]
    scripts = found["scripts"]
    assert scripts.hosts == ("hv-*", "old-1")
    assert scripts.limits == Limits(per_host=1, per_target=2, total=4)
    assert scripts.dry_run
    procedures = scripts.procedures()
    assert set(procedures) == {EventType.REBOOT, EventType.FREEZE, EventType.REDEPLOY}
    reboot = procedures[EventType.REBOOT]
    assert (reboot.timeout, reboot.retries) == (timedelta(minutes=2), 3)
    assert reboot.action.effect is Effect.RESTARTS
    assert {type_: each.on_doubt for type_, each in procedures.items()} == {
        EventType.REBOOT: OnDoubt.STOP,
        EventType.FREEZE: OnDoubt.STOP,
        EventType.REDEPLOY: OnDoubt.REPEAT,
    }
    assert set(found["ticket"].procedures()) == set(EventType)
    assert [name for name, table in found.items() if table.is_remote] == ["rack1"]


def test_every_mistake_is_reported_with_its_line(tmp_path: Path) -> None:
    kinds = any_of([*KINDS])

    assert mistakes(
        tmp_path,
        """\
[actuators.one]
driver = "webhok"
[actuators.two]
hosts = ["hv-*"]
[actuators.three]
driver = "command"
limits = { total = 0 }
reboot = { argv = ["vm-reboot"] }
[actuators.four]
driver = "webhook"
url = "ops.example"
secret_file = "hook.key"
on_doubt = "maybe"
[actuators.five]
driver = "command"
check = ["/bin/true"]
[actuators.simulated]
driver = "remote"
""",
    ) == [
        f'forewarned.toml:2: actuators.one.driver: expected {kinds}, got "webhok"; did you mean webhook?',
        f"forewarned.toml:3: actuators.two: the field 'driver' is missing: expected {kinds}",
        "forewarned.toml:7: actuators.three.limits.total: expected a whole number >= 1, got 0",
        "forewarned.toml:8: actuators.three.reboot: the program must be an absolute path, not 'vm-reboot'",
        'forewarned.toml:13: actuators.four.on_doubt: expected repeat or stop, got "maybe"',
        "forewarned.toml:14: actuators.five: no type of event has a program: set reboot, for example",
        "forewarned.toml:17: actuators.simulated: the name simulated is reserved for the emulator",
    ]


LISTED = """
[actuators.scripts]
driver = "command"
reboot = { argv = ["/bin/true"] }
listing = ["/usr/local/bin/vm-list"]
[actuators.ticket]
driver = "webhook"
url = "https://ops.example/hook"
secret_file = "hook.key"
[actuators.rack1]
driver = "remote"
"""


def test_a_source_is_the_platform_of_an_actuator(tmp_path: Path) -> None:
    path = tmp_path / "forewarned.toml"
    path.write_text(f'{LISTED}[[sources]]\nactuator = "scripts"\nevery = "1m"\n')

    declared = settings.load(path)

    assert dict(declared.sources) == {
        "scripts": SourceTable(actuator="scripts", every=timedelta(minutes=1))
    }
    assert set(declared.local().actuators) == {"scripts", "ticket"}


def test_mistakes_in_sources_say_what_to_do(tmp_path: Path) -> None:
    names = ("scripts", "scripts", "script", "ticket", "rack1")
    text = "".join(f'[[sources]]\nactuator = "{name}"\n' for name in names)

    found = mistakes(tmp_path, f'{LISTED}{text}[[sources]]\nactuator = "ticket"\nevery = "1s"\n')

    assert [each.partition(": ")[2] for each in found] == [
        "sources[1].actuator: another [[sources]] table already names scripts",
        "sources[2].actuator: there is no [actuators.script] in this file; did you mean scripts?",
        "sources[3].actuator: this actuator's driver can't list VMs: declare them in a fleet file",
        "sources[4].actuator: this actuator runs on another machine: put [[sources]] in its file on that machine",
        "sources[5]: the field 'every' must be at least 5s",
    ]
    assert mistakes(tmp_path, "sources = 3")


def test_unknown_fields_and_wrong_types_are_mistakes(tmp_path: Path) -> None:
    assert mistakes(
        tmp_path,
        """\
[actuators.ticket]
driver = "webhook"
url = "ops.example"
secret_file = 7
timout = "1h"
types = ["Reboot", "Nap"]
""",
    ) == [
        "forewarned.toml:4: actuators.ticket.secret_file: expected a path, got 7",
        "forewarned.toml:5: actuators.ticket.timout: there is no such field; did you mean timeout?",
        'forewarned.toml:6: actuators.ticket.types[1]: expected Freeze, Reboot, Redeploy, Preempt or Terminate, got "Nap"',
    ]


@pytest.mark.parametrize("text", ["actuators = 3", "[actuators]\nrack1 = 3"])
def test_what_is_no_table_is_a_mistake(tmp_path: Path, text: str) -> None:
    assert mistakes(tmp_path, text)
