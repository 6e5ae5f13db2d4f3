"""The agent's file: what it means, and that all that is wrong with it is told with its line."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from forewarned.agent.config.rules import EventSource, EventType, Hours
from forewarned.agent.config.settings import (
    AgentSettings,
    AgentTable,
    DirectoryReadiness,
    SettingsError,
    load,
    parse,
)
from forewarned.agent.hooks.command import CommandHook
from forewarned.agent.model import Approve, Leader
from forewarned.config.values import Address

FILE = Path("/etc/forewarned/agent.toml")
WHOLE = """
[agent]
endpoint = "http://127.0.0.1:8169"
resource = "web_0"
state = "state"
listen = "[::1]:9000"
poll = "5s"
ready_timeout = "90s"
readiness = { kind = "directory", path = "/mnt/shared" }
log_format = "json"

[hooks.drain]
kind = "command"
argv = ["drain", "web"]
timeout = "1m30s"
expected = "10s"
cut = 2
required = false

[[rules]]
name = "short freeze"
type = ["freeze", "Reboot"]
source = "Platform"
max_duration = "10s"
resources = ["web_*"]
between = "22:00-06:00"
prepare = ["drain"]
approve = "never"
leader = "all-ready"

[[rules]]
name = "all else"
recover = ["drain"]
"""
RULE = '[[rules]]\nname = "any"\n'


def read(text: str) -> AgentSettings:
    return parse(text, path=FILE)


def problems(text: str) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        read(text)
    prefix = f"{FILE}:"
    assert all(problem.startswith(prefix) for problem in refused.value.mistakes)
    return [problem.removeprefix(prefix) for problem in refused.value.mistakes]


def test_a_file_says_where_to_look_what_to_run_and_when() -> None:
    settings = read(WHOLE)

    assert settings.endpoint == "http://127.0.0.1:8169"
    assert settings.resource == "web_0"
    assert settings.agent.state == FILE.parent / "state"
    assert settings.agent.listen == Address("::1", 9000)
    assert settings.agent.poll == timedelta(seconds=5)
    assert settings.agent.readiness == DirectoryReadiness(path=Path("/mnt/shared"))
    drain = settings.hooks["drain"]
    assert isinstance(drain, CommandHook)
    assert drain.argv == ("drain", "web")
    assert drain.timeout == timedelta(seconds=90)
    assert not drain.required
    first, second = settings.rules
    assert first.type == (EventType.FREEZE, EventType.REBOOT)
    assert first.source is EventSource.PLATFORM
    assert first.between == Hours(22 * 60, 6 * 60)
    assert first.approve is Approve.NEVER
    assert first.leader is Leader.ALL_READY
    assert second.approve is Approve.WHEN_READY


def test_all_but_rules_has_a_default() -> None:
    settings = read(RULE)

    assert settings.agent == AgentTable()
    assert settings.endpoint is None
    assert settings.resource is None
    assert settings.hooks == {}
    assert str(settings.agent.listen) == "127.0.0.1:8172"


def test_the_listener_may_have_a_host_name_with_underscores() -> None:
    listen = read(f'[agent]\nlisten = "my_host:8172"\n{RULE}').agent.listen

    assert listen == Address("my_host", 8172)


def test_the_listener_can_be_switched_off() -> None:
    listen = read(f'[agent]\nlisten = "off"\n{RULE}').agent.listen

    assert listen is None


def test_every_problem_is_listed_at_once_each_with_its_line() -> None:
    text = """[agent]
polls = "1s"
poll = "1 second"
listen = "here"
log_level = "loud"
readiness = { kind = "paper" }

[hooks.drain]
kind = "comand"

[hooks.stop]
kind = "command"
argv = "systemctl stop web"
timeout = 30
cuts = 1

[[rules]]
name = "a"
type = ["Rebot"]
between = "22-6"
prepare = ["stopp"]

[[rule]]
"""

    assert problems(text) == [
        "2: agent.polls: there is no such field; did you mean poll?",
        "3: agent.poll: '1 second' is not a duration: write it like 90s, 14m59s, 7d or PT5M",
        '4: agent.listen: expected HOST:PORT, like 127.0.0.1:8172 or [::1]:8172, or off, got "here"',
        '5: agent.log_level: expected debug, info, warning or error, got "loud"',
        '6: agent.readiness: expected kind to be directory, kubernetes or forewarned, got "paper"',
        problems(text)[5],
        '13: hooks.stop.argv: expected a list, got "systemctl stop web"',
        "14: hooks.stop.timeout: expected a duration like 90s, got 30",
        "15: hooks.stop.cuts: there is no such field; did you mean cut?",
        '19: rules[0].type[0]: expected Freeze, Reboot, Redeploy, Preempt or Terminate, got "Rebot"; did you mean Reboot?',
        "20: rules[0].between: '22-6' is not a time range: write it like 22:00-06:00",
        "21: rules[0].prepare[0]: there is no [hooks.stopp]; did you mean stop?",
        "23: rule: there is no such table; did you mean rules?",
    ]
    assert problems(text)[5].startswith("9: hooks.drain.kind: expected command")
    assert problems(text)[5].endswith('got "comand"; did you mean command?')


def test_a_rule_names_hooks_that_there_are_and_each_once() -> None:
    hook = '[hooks.drain]\nkind = "command"\nargv = ["true"]\n'

    found = problems(f'{hook}{RULE}prepare = ["drian", "drain", "drain"]\nrecover = ["drain"]\n')

    assert found == [
        "6: rules[0].prepare[0]: there is no [hooks.drian]; did you mean drain?",
        "6: rules[0].prepare[2]: drain is already in the list, and runs only once",
    ]


def test_a_hook_that_is_wrong_is_not_also_said_to_be_missing() -> None:
    found = problems(f'[hooks.drain]\nkind = "command"\n{RULE}prepare = ["drain"]\n')

    assert found == ["1: hooks.drain: the field 'argv' is missing"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1: there are no rules, so the agent would never do anything: add [[rules]]"),
        ("rules = 3", "1: rules: expected tables like [[rules]]"),
        (f"hooks = 3\n{RULE}", "1: hooks: expected tables like [hooks.drain]"),
        (f"agent = 3\n{RULE}", "1: agent: expected a table, got 3"),
        (f"[hooks]\ndrain = 3\n{RULE}", "2: hooks.drain: expected a table, got 3"),
        (f'[hooks."a b"]\n{RULE}', "1: hooks.a b: a hook's name has up to 64 letters,"),
        (f"[hooks.a]\n{RULE}", "1: hooks.a: the field 'kind' is missing: expected command"),
        (f"[hooks.a]\nkind = []\n{RULE}", "2: hooks.a.kind: expected command"),
        (
            f'[hooks.a]\nkind = "command"\nargv = []\n{RULE}',
            "3: hooks.a.argv: expected a list of at least 1 item",
        ),
        (
            f'[hooks.a]\nkind = "command"\nargv = ["a"]\ntimeout = "0s"\n{RULE}',
            "4: hooks.a.timeout: expected more than 0s",
        ),
        (
            f'[hooks.a]\nkind = "command"\nargv = ["a"]\nexpected = "2m"\n{RULE}',
            "4: hooks.a.expected: is longer than timeout",
        ),
        (
            f'[hooks.a]\nkind = "command"\nargv = ["a"]\nretries = -1\n{RULE}',
            "4: hooks.a.retries: expected a whole number >= 0, got -1",
        ),
        (
            f'[hooks.a]\nkind = "command"\nargv = ["a"]\ntimeout = "9999d"\n{RULE}',
            "4: hooks.a.timeout: expected a duration of at most a year",
        ),
        (
            f'[hooks.a]\nkind = "command"\nargv = ["a\\u0000"]\n{RULE}',
            "1: hooks.a: an argument can't contain a NUL",
        ),
        (f'{RULE}[[rules]]\nname = "b"', "3: rules[1]: no event reaches this rule: rule"),
        (f'{RULE}type = ["Freeze"]\n{RULE}', "5: rules[1].name: another rule is named"),
        ("[[rules]]", "1: rules[0]: the field 'name' is missing"),
        ('[[rules]]\nname = ""', "2: rules[0].name: expected text of length >= 1"),
        (f'{RULE}leader = "all-ready"', '3: rules[0].leader: needs "readiness" in [agent]'),
        (f'{RULE}min_duration = "2m"\nmax_duration = "1m"', "1: rules[0]: min_duration is longer"),
        (f'[agent]\npoll = "0s"\n{RULE}', "1: agent: poll must be more than 0s and at most 1m"),
        (f'[agent]\nready_timeout = "0s"\n{RULE}', "1: agent: ready_timeout must be more than 0s"),
        (f'[agent]\nendpoint = "a b"\n{RULE}', "1: agent: 'a b' is not an endpoint"),
        (f"[agent]\nreadiness = 3\n{RULE}", "2: agent.readiness: expected a table, got 3"),
        (
            f'[agent]\nreadiness = {{ kind = "kubernetes", namespace = "a/b" }}\n{RULE}',
            "2: agent.readiness.namespace: expected text matching regex",
        ),
        (
            f'[agent]\nreadiness = {{ kind = "kubernetes", server = "here" }}\n{RULE}',
            "2: agent.readiness: ",
        ),
        (f"[agent]\nstate = 3\n{RULE}", "2: agent.state: expected a path, got 3"),
        ("rules = [", "1: Invalid"),
        ("\nrules == 3", "2: Invalid value"),
        (f'[hooks.a]\nkind = "command"\nargv = [3]\n{RULE}', "3: hooks.a.argv[0]: expected text"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, told: str) -> None:
    (found,) = problems(text)

    assert found.startswith(told)


def test_the_environment_says_last_where_to_look(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(f"\ufeff{WHOLE}")

    plain = load(file, environ={"FOREWARNED_ENDPOINT": ""})
    told = load(file, environ={"FOREWARNED_ENDPOINT": "http://10.0.0.1"})

    assert plain.endpoint == "http://127.0.0.1:8169"
    assert told.endpoint == "http://10.0.0.1"
    assert told.rules == plain.rules
    with pytest.raises(SettingsError, match=r"environment FOREWARNED_ENDPOINT: 'a b' is not an"):
        load(file, environ={"FOREWARNED_ENDPOINT": "a b"})


def test_a_file_that_can_not_be_read_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff")

    with pytest.raises(SettingsError, match="No such file"):
        load(tmp_path / "gone.toml", environ={})
    with pytest.raises(SettingsError, match="not UTF-8"):
        load(binary, environ={})


def test_settings_are_frozen() -> None:
    settings = read(RULE)

    with pytest.raises(AttributeError):
        settings.agent.poll = timedelta(0)  # type: ignore[misc]  # as it should be
    assert msgspec.structs.asdict(settings.agent)["poll"] == timedelta(seconds=1)
