"""Settings: precedence, where values came from, and what is refused."""

import subprocess
import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.config.values import Address, ClockSpeed, DatabaseUrl, show
from forewarned.core.model import EventType
from forewarned.core.rules import Rules
from forewarned.runtime.settings import (
    SETTINGS,
    Approve,
    Mode,
    Setting,
    Settings,
    SettingsError,
    load,
)
from forewarned.runtime.startup import RULES
from tests.runtime.settings.resolving import problems, resolve

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# --- precedence and origin -----------------------------------------------------------------------


def test_without_any_source_every_setting_has_its_default() -> None:
    resolved = resolve()

    assert resolved.settings == Settings()
    assert set(resolved.origin.values()) == {"default"}
    assert resolved.file is None


def test_flags_win_over_the_environment_and_that_over_the_file() -> None:
    file = "\nrate = 1\nsilence = '1h'\nmax_user_events = 1\n"

    resolved = resolve(
        file, flags={"rate": "3"}, FOREWARNED_RATE="2", FOREWARNED_SILENCE="2h", HOME="/"
    )

    assert resolved.settings.rate == 3
    assert resolved.settings.silence == timedelta(hours=2)
    assert resolved.settings.max_user_events == 1
    assert resolved.origin["rate"] == "flag --rate"
    assert resolved.origin["silence"] == "environment FOREWARNED_SILENCE"
    assert resolved.origin["max_user_events"] == "file forewarned.toml:4"
    assert resolved.origin["mode"] == "default"


def test_a_flag_that_was_not_given_and_an_empty_variable_say_nothing() -> None:
    assert resolve(flags={"rate": None}, FOREWARNED_RATE="").settings == Settings()


def test_none_takes_back_what_a_weaker_source_says() -> None:
    resolved = resolve("max_user_events = 10", FOREWARNED_MAX_USER_EVENTS="none")

    assert resolved.settings.max_user_events is None


def test_the_file_may_be_elsewhere_and_its_paths_are_relative_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    file = folder / "server.toml"
    file.write_text('fleet = "fleet.toml"\ndata = "/var/lib/forewarned"')

    by_flag = load(flags={}, environ={"FOREWARNED_CONFIG": "nowhere"}, path=file)
    by_variable = load(flags={"fleet": "mine.toml"}, environ={"FOREWARNED_CONFIG": str(file)})

    assert by_flag.file == by_variable.file == file
    assert by_flag.settings.fleet == folder / "fleet.toml"
    assert by_flag.settings.data == Path("/var/lib/forewarned")
    assert by_variable.settings.fleet == Path("mine.toml")


def test_a_file_that_was_asked_for_must_exist() -> None:
    with pytest.raises(SettingsError, match=r"flag --config: there is no file 'gone.toml'"):
        load(flags={}, environ={}, path=Path("gone.toml"))
    assert problems(FOREWARNED_CONFIG="gone.toml").startswith("environment FOREWARNED_CONFIG")


def test_service_mode_has_defaults_of_its_own() -> None:
    settings = resolve('mode = "service"').settings

    assert settings.clock.is_real
    assert settings.rate_limit
    assert resolve(flags={"mode": "service", "rate_limit": "off"}).settings.rate_limit is False


# --- refusals ------------------------------------------------------------------------------------


def test_a_server_has_at_most_one_process_for_polls() -> None:
    assert problems(flags={"workers": "2"}) == (
        'flag --workers: workers = "2": expected 0 or 1: one process serves tens of thousands of polls a'
        " second, and a server runs at most one"
    )
    assert "whole number of at least 0" in problems(flags={"workers": "-1"})


def test_all_problems_are_reported_together_with_source_key_value_and_what_is_allowed() -> None:
    told = problems(
        'rates = 4\nlog_level = "loud"\nrate_limit = 3\n',
        flags={"clock": "fast"},
        FOREWARNED_FIRST_CALL_DELAY="3m",
    )

    assert told.splitlines() == [
        "file forewarned.toml:1: rates = 4: there is no such setting; did you mean rate?",
        'file forewarned.toml:2: log_level = "loud": expected debug, info, warning or error',
        "file forewarned.toml:3: rate_limit = 3: expected on or off",
        'environment FOREWARNED_FIRST_CALL_DELAY: first_call_delay = "3m": expected a duration from 0s to 2m',
        'flag --clock: clock = "fast": expected real, paused, or a speed from 0.001x to 100000x, like 60x',
    ]


def test_a_table_is_no_setting() -> None:
    told = problems("[server.clock]\nspeed = 1\n")

    assert told.startswith(
        'file forewarned.toml:1: server = {"clock": {"speed": 1}}: there is no such'
    )


def test_a_file_that_is_no_toml_is_refused_with_its_line() -> None:
    assert problems("rate = x\n") == "file forewarned.toml:1: Invalid value"


def test_a_file_that_is_beyond_all_measure_is_refused() -> None:
    assert problems(f"rate = {'9' * 5000}") == "file forewarned.toml: a number has too many digits"
    assert problems(f"rate = {'[' * 5000}") == "file forewarned.toml: the nesting is too deep"


def test_the_mark_that_editors_put_before_a_text_is_passed_over() -> None:
    assert resolve("\ufeffrate = 7").settings.rate == 7


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("mode", ["", "prod", 1]),
        ("data", [1]),
        ("store", ["", 1, "forewarned.db", "mysql://host/db", "postgresql://u:a@b@host/db"]),
        ("metadata", ["", "127.0.0.1", ":80", "a:b", "[::1]", "::1:80", "1.2.3.4:65536", "a b:1", "[x]:1", 80]),
        ("fleet", [3, False]),
        ("clock", ["0x", "100001x", "-1x", "1e3x", 1, "x"]),
        ("rate_limit", ["maybe", 1, []]),
        ("rate", ["0", "nan", "inf", "x", True, [], -1]),
        ("default_vm", [1]),
        ("max_user_events", ["0", "-1", "1.5", 0, True, 1.5]),
        ("silence", ["0", "1", 5, "366d"]),
        ("hosts", [[1], 3]),
        ("address_range", ["10.0.0.1/8", "x", 3.5]),
        ("host_failure_type", ["Freeze"]),
    ],
)  # fmt: skip
def test_what_a_setting_cant_be_is_refused(name: str, values: list[object]) -> None:
    setting = next(setting for setting in SETTINGS if setting.name == name)

    for value in values:
        with pytest.raises(ValueError):
            setting.parse(value)


def test_service_mode_runs_in_real_time_and_knows_vms_by_address() -> None:
    told = problems(flags={"mode": "service", "clock": "paused", "default_vm": "web"})

    assert "flag --clock: clock = paused: " in told
    assert "flag --default-vm: default_vm = web: " in told


def test_a_recording_is_for_an_emulator_and_brings_its_own_fleet() -> None:
    assert resolve(flags={"replay": "events.jsonl"}).settings.replay == Path("events.jsonl")
    assert "real events only" in problems(flags={"replay": "x", "mode": "service"})
    assert "omit --fleet" in problems(flags={"replay": "x", "fleet": "fleet.toml"})


def test_only_a_service_shares_a_database() -> None:
    url = "postgresql://db1,db2/forewarned?target_session_attrs=read-write"

    service = resolve(f'mode = "service"\nstore = "{url}"').settings

    assert service.store == DatabaseUrl(url)
    assert resolve('mode = "service"').settings.store is None
    assert problems(flags={"mode": "emulator", "store": url}).startswith(
        f"flag --store: store = {url}: an emulator has its own time and VMs"
    )


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:SECRET@db/forewarned",
        "postgresql://me:SE%CRET@db/forewarned",
        "postgresql://me:SECRET@a@db/forewarned",
        "postgresql://me:SEC/RET@db/forewarned",
        "postgresql://db/forewarned?passwrd=SECRET",
        "postgresql://db/forewarned?password=SECRET&sslpassword=SECRET",
        "postgres//me:SECRET@db/forewarned",
    ],
)
def test_the_password_of_a_database_is_never_shown(url: str) -> None:
    for mode in ("emulator", "service"):
        try:
            settings = resolve(FOREWARNED_STORE=url, FOREWARNED_MODE=mode).settings
        except SettingsError as error:
            told = str(error)
            assert told.startswith("environment FOREWARNED_STORE: store")
        else:
            told = f"{show(settings.store)} {settings}"
            assert url == settings.store.text if settings.store else False
        assert "SEC" not in told


def test_the_settings_that_rules_are_made_of_are_those_that_nodes_agree_on() -> None:
    """Each of them changes the rules, and there is one for each rule but that of the mode."""
    service: dict[str, object] = {"mode": "service"}
    other = {
        "silence": "2d",
        "reset_incarnation": "on",
        "max_user_events": "7",
        "host_failure_type": "Reboot",
        "predicted_failure_notice": "3d",
        "approve": "own-resource",
    }
    usual = resolve(flags=service).settings.rules()

    assert set(other) == set(RULES)
    assert len(RULES) + 1 == len(fields(Rules))
    for name, value in other.items():
        assert resolve(flags=service | {name: value}).settings.rules() != usual, name


def test_a_server_without_the_client_of_postgresql_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "forewarned.storage.postgres.url", raising=False)

    told = problems(flags={"mode": "service", "store": "postgresql://db/x"})

    assert "pip install 'forewarned[postgres]'" in told


def test_a_server_on_sqlite_does_without_the_client_of_postgresql() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None;"
        "from forewarned.runtime import poller, server, single_process, startup, writer"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_parameter_that_the_database_does_not_know_is_a_mistake() -> None:
    told = problems(flags={"mode": "service", "store": "postgresql://db/x?sslmod=require"})

    assert told.endswith("; did you mean sslmode?")


@pytest.mark.parametrize("off", ["off", "OFF", "none"])
def test_arm_can_be_switched_off(off: str) -> None:
    assert resolve(FOREWARNED_ARM=off).settings.arm is None
    assert resolve("arm = false").settings.arm is None
    assert resolve(flags={"arm": "off", "control": "127.0.0.1:8171"}).settings.arm is None


def test_an_address_of_arm_may_be_written_as_clients_write_it() -> None:
    assert resolve(FOREWARNED_ARM="https://[::1]:9000/").settings.arm == Address("::1", 9000)
    assert problems(flags={"arm": "on"}).endswith("like 127.0.0.1:8169 or [::1]:8169, or off")


def test_listeners_need_different_addresses_unless_any_port_will_serve() -> None:
    anywhere: dict[str, object] = dict.fromkeys(["metadata", "control", "arm"], "127.0.0.1:0")

    assert "need different addresses" in problems(flags={"control": "127.0.0.1:8169"})
    assert resolve(flags=anywhere).settings.arm == Address("127.0.0.1", 0)


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_default_is_shown_in_the_words_its_parser_reads(setting: Setting) -> None:
    for default in (setting.default, setting.service_default):
        assert setting.parse(show(default)) == default


@given(st.floats(min_value=0.001, max_value=100_000).map(lambda speed: round(speed, 6)))
def test_any_speed_is_read_back_as_it_is_shown(speed: float) -> None:
    assert ClockSpeed.parse(str(ClockSpeed(speed))) == ClockSpeed(speed)


def test_clock_speeds() -> None:
    assert ClockSpeed.parse("real") == ClockSpeed(None)
    assert ClockSpeed.parse("paused") == ClockSpeed(0)
    assert str(ClockSpeed.parse("60x")) == "60x"


@pytest.mark.parametrize(
    ("text", "address", "is_loopback"),
    [
        ("127.0.0.1:8169", Address("127.0.0.1", 8169), True),
        ("127.8.0.1:0", Address("127.8.0.1", 0), True),
        ("localhost:80", Address("localhost", 80), True),
        ("[::1]:80", Address("::1", 80), True),
        ("[::]:80", Address("::", 80), False),
        ("0.0.0.0:80", Address("0.0.0.0", 80), False),
        ("my_host:80", Address("my_host", 80), False),
        ("localhost.example.com:80", Address("localhost.example.com", 80), False),
    ],
)
def test_addresses(text: str, address: Address, is_loopback: bool) -> None:
    assert Address.parse(text) == address
    assert str(address) == text
    assert address.is_loopback is is_loopback


def test_lists_are_written_with_commas_or_as_toml_lists() -> None:
    assert resolve('hosts = ["a", "b"]').settings.hosts == ("a", "b")
    assert resolve(FOREWARNED_HOSTS="c, d,").settings.hosts == ("c", "d")


def test_the_rules_follow_from_the_settings() -> None:
    settings = Settings(
        silence=timedelta(hours=1),
        reset_incarnation=True,
        max_user_events=10,
        approve=Approve.OWN_RESOURCE,
    )

    rules = settings.rules()

    assert rules.silence == timedelta(hours=1)
    assert rules.resets_incarnation
    assert rules.max_user_events == 10
    assert rules.host_failure_type is EventType.REDEPLOY
    assert rules.own_terminate_only
    assert rules.short_notice_allowed
    assert not Settings(mode=Mode.SERVICE).rules().short_notice_allowed


def test_every_type_of_event_settles_and_its_impact_is_over_by_then() -> None:
    settings = Settings()

    assert set(settings.settles()) == set(EventType)
    assert all(impact <= settings.settles()[type_] for type_, impact in settings.impacts().items())


def test_the_default_range_is_on_loopback() -> None:
    assert Settings().address_range.is_loopback


# --- the manual ----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_manual_has_every_setting_with_its_flag_variable_and_default(setting: Setting) -> None:
    default = show(setting.default) or "(empty)"
    if setting.service_default != setting.default:
        default = f"{default}; {show(setting.service_default)} in service mode"
    names = f"`{setting.name}`<br>`{setting.flag}`<br>`{setting.variable}`"
    row = f"| {names} | {default} | {setting.help} |"

    assert row in (ROOT / "docs" / "settings.md").read_text().splitlines()


# --- actuators -----------------------------------------------------------------------------------

ACTUATORS = """\
mode = "service"
[actuators.rack1]
driver = "remote"
hosts = ["hv-*"]
[actuators.scripts]
driver = "command"
reboot = { argv = ["/bin/true"] }
"""


def test_actuators_are_read_beside_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "forewarned.toml"
    file.write_text(ACTUATORS)

    actuators = load(flags={}, environ={}, path=file).actuators

    assert actuators.hosts() == {"rack1": ("hv-*",), "scripts": ()}
    assert list(actuators.local().actuators) == ["scripts"]
    assert actuators.folder == tmp_path


def test_actuators_are_listed_with_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "forewarned.toml"
    file.write_text(ACTUATORS)

    listed = load(flags={}, environ={}, path=file).listing()

    assert ("mode", "service", f"file {file}:1") in listed
    assert ("actuators.rack1", "remote", f"file {file}") in listed


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ('"remote"', '"remot"', ":3: actuators.rack1.driver: expected"),
        ('mode = "service"', "", ":2: actuators: an emulator simulates all work on VMs"),
        (
            '"service"',
            '"service"\nworkers = 0',
            ":3: actuators: actuators run as separate processes",
        ),
    ],
)
def test_mistakes_in_actuators_are_mistakes_in_the_settings(
    tmp_path: Path, old: str, new: str, mistake: str
) -> None:
    file = tmp_path / "forewarned.toml"
    file.write_text(ACTUATORS.replace(old, new))

    with pytest.raises(SettingsError) as caught:
        load(flags={}, environ={}, path=file)

    assert mistake in str(caught.value)
