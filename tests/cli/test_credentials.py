"""A token reaches the server that asks for one, and nobody else (S12)."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner, Result

from forewarned.cli import cli
from forewarned.cli.connection import Control
from forewarned.cli.credentials import Credentials
from forewarned.cli.failures import RefusedError, UsageError
from forewarned.cli.parameters import EVENT_TYPES
from tests.cli.refusing_server import TOKEN, RefusingServer, refusing_server
from tests.cli.served import PLAIN, Served, invoke
from tests.cli.test_documented import ALL

EVENT = "0000000A-0000-4000-8000-000000000000"
ASKING = [
    "settings --running",
    "fleet show",
    "fleet apply FILE",
    "events",
    "events --watch",
    f"explain {EVENT}",
    f"wait {EVENT}",
    "history",
    "history export",
    "subscription add ops https://ops.example.com/events",
    "subscription change ops --type reboot",
    "subscription remove ops --yes",
    "subscription list",
    *(
        f"subscription {verb} ops"
        for verb in ("show", "deliveries", "test", "pause", "resume", "redeliver", "rotate")
    ),
    *(f"schedule {type_} --vm web" for type_ in EVENT_TYPES),
    "maintain --host rack1",
    "fail rack1",
    "predict rack1",
    f"approve {EVENT}",
    f"cancel {EVENT}",
    f"complete {EVENT}",
    "clock",
    "clock show",
    "clock pause",
    "clock resume",
    "clock speed 60x",
    "clock step 1m",
    "faults",
    "faults list",
    "faults add empty",
    "faults clear",
    "reset",
    "run true",
    "env az",
    "nodes",
    "tasks list",
    "tasks retry E0000001 vm1",
    "tasks skip E0000001 vm1",
    "sources list",
    "sources forget rack1",
    "host rules hv-a",
    "host list",
    "host drain hv-a",
    "host status hv-a",
    "host undrain hv-a",
    "scenario run SCENARIO",
]
"""Each command that talks to a server, the streams among them."""

SCENARIO = """
name = "approve"
title = "A reboot is approved"
fact = "An event starts as soon as it is approved."
source = "https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events"
risk = "The VM reboots in the middle of its work."

[[step]]
do = "schedule"
name = "reboot"
type = "Reboot"

[[expect]]
that = "approved"
event = "reboot"
within = "60s"
"""


@pytest.fixture
def closed() -> Iterator[RefusingServer]:
    with refusing_server() as found:
        yield found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text('[[vms]]\nname = "web"\naddress = "127.0.0.1"\n')
    path.with_name("scenario.toml").write_text(SCENARIO)
    return path


def run(at: str, words: str, file: Path | None = None, **variables: str) -> Result:
    files = {} if file is None else {"FILE": file, "SCENARIO": file.with_name("scenario.toml")}
    typed = [str(files.get(word, word)) for word in words.split()]
    return invoke(*typed, FOREWARNED_CONTROL=at, **variables)


def test_no_command_that_asks_a_server_is_missing_here() -> None:
    taking = {
        " ".join(path[1:])
        for path, command in ALL.items()
        if path[1:] and any("--token-file" in each.opts for each in command.params)
    }

    # It has a file of its own, and goes on asking: tests/cli/actuators/test_commands.py.
    taking.discard("actuator run")
    # Being refused is a finding: tests/cli/doctor.
    taking.discard("doctor")
    missing = {name for name in taking if not any(f"{a} ".startswith(f"{name} ") for a in ASKING)}

    assert missing == set()
    assert len(taking) > 20


@pytest.mark.parametrize("words", ASKING)
def test_every_command_shows_the_token_and_says_what_to_do_without(
    closed: RefusingServer, file: Path, words: str
) -> None:
    """S12."""
    without = run(closed.url, words, file)
    wrong = run(closed.url, words, file, FOREWARNED_TOKEN="fw_of_nobody")
    known = run(closed.url, words, file, FOREWARNED_TOKEN=TOKEN)

    assert closed.shown == [None, "Bearer fw_of_nobody", f"Bearer {TOKEN}"]
    for result, code in ((without, "missing"), (wrong, "invalid"), (known, "role_too_low")):
        assert (result.exit_code, result.stdout) == (1, "")
        assert code in result.stderr.splitlines()[0]
        assert "on the server's machine" in result.stderr.splitlines()[1]
    for result in (without, wrong):
        assert "forewarned token create NAME --role ROLE" in result.stderr
        assert "FOREWARNED_TOKEN" in result.stderr
    assert "fw_" not in wrong.output
    assert TOKEN not in known.output


def test_with_json_being_refused_has_the_shape_of_any_error(closed: RefusingServer) -> None:
    result = run(closed.url, "events --json")

    assert json.loads(result.stderr) == {
        "error": {"code": "token_missing", "message": "said token_missing", "field": None}
    }


def test_a_token_can_be_in_a_file_which_goes_before_the_variable(
    closed: RefusingServer, tmp_path: Path
) -> None:
    kept = tmp_path / "token"
    kept.write_text(f"{TOKEN}\n")

    after = run(closed.url, f"clock --token-file {kept}", FOREWARNED_TOKEN="fw_other")
    before = run(closed.url, f"--token-file {kept} clock", FOREWARNED_TOKEN="fw_other")

    assert closed.shown == [f"Bearer {TOKEN}"] * 2
    assert (after.exit_code, before.exit_code) == (1, 1)


def test_an_empty_variable_is_no_token(closed: RefusingServer) -> None:
    run(closed.url, "clock", FOREWARNED_TOKEN="")

    assert closed.shown == [None]


@pytest.mark.parametrize(
    "words", ["--token hush clock", "clock --token hush", "clock --token=hush"]
)
def test_no_flag_takes_a_token_and_what_was_typed_is_not_repeated(
    closed: RefusingServer, words: str
) -> None:
    result = run(closed.url, words)

    assert result.exit_code == 2
    assert "--token-file" in result.stderr
    assert "hush" not in result.output
    assert closed.shown == []


@pytest.mark.parametrize(
    "text", ["", "\n", "hush hush", "hush\nhush", "Bearer hush", "hüsh", "hush\x00", "h" * 20_000]
)
def test_what_is_no_token_is_not_sent_and_not_shown(
    closed: RefusingServer, tmp_path: Path, text: str
) -> None:
    kept = tmp_path / "token"
    kept.write_text(text)

    result = run(closed.url, f"clock --token-file {kept}")

    assert result.exit_code == 2
    assert f"the file {kept} contains no token" in result.stderr
    assert "forewarned token create" in result.stderr
    assert "hush" not in result.output
    assert closed.shown == []


def test_a_variable_that_holds_no_token_is_named(closed: RefusingServer) -> None:
    result = run(closed.url, "clock", FOREWARNED_TOKEN="hush hush")

    assert result.exit_code == 2
    assert "FOREWARNED_TOKEN contains no token" in result.stderr
    assert "hush" not in result.output
    assert closed.shown == []


def test_a_token_file_that_is_not_there_is_wrong_usage(
    closed: RefusingServer, tmp_path: Path
) -> None:
    result = run(closed.url, f"clock --json --token-file {tmp_path / 'none'}")

    assert result.exit_code == 2
    fault = json.loads(result.stderr)["error"]
    assert (fault["code"], fault["field"]) == ("bad_token", "token_file")
    assert "No such file" in fault["message"]
    assert closed.shown == []


def test_what_asks_no_server_reads_no_token(file: Path, tmp_path: Path) -> None:
    result = invoke("--token-file", str(tmp_path / "none"), "fleet", "check", str(file))

    assert result.exit_code == 0


@pytest.mark.parametrize(
    "address",
    [
        "http://192.0.2.1:8170",
        "192.0.2.1:8170",
        "http://control.example:8170",
        "http://localhost.example:8170",
        "http://127.0.0.1.example:8170",
        "http://[2001:db8::1]:8170",
        "http://0.0.0.0:8170",
    ],
)
def test_a_token_never_goes_over_a_network_in_clear(address: str) -> None:
    """S12: TLS off loopback."""
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200)

    runner = CliRunner(env={**PLAIN, "FOREWARNED_CONTROL": address, "FOREWARNED_TOKEN": TOKEN})
    result = runner.invoke(cli, ["clock"], obj=httpx2.MockTransport(answer))

    assert result.exit_code == 2
    assert "https://HOST:PORT" in result.stderr
    assert TOKEN not in result.output
    assert asked == []


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:1", "127.8.9.1:1", "LOCALHOST:1", "[::1]:1", "https://control.example:8170"],
)
def test_a_token_goes_to_this_machine_and_over_tls(address: str) -> None:
    """S12."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        return httpx2.Response(200, json={})

    with Control(
        address, credentials=Credentials(token=TOKEN), transport=httpx2.MockTransport(answer)
    ) as control:
        assert control.get("/v1/clock").body == b"{}"


@pytest.mark.parametrize("words", ["clock", "events --watch", "fleet apply FILE", "fail rack1"])
def test_no_redirect_is_given_the_token(closed: RefusingServer, file: Path, words: str) -> None:
    with refusing_server(leads_to=closed.url) as leading:
        result = run(leading.url, words, file, FOREWARNED_TOKEN=TOKEN)

    assert result.exit_code == 4
    assert "it answered 307" in result.stderr
    assert leading.shown == [f"Bearer {TOKEN}"]
    assert closed.shown == []


def test_credentials_do_not_show_their_token() -> None:
    assert TOKEN not in repr(Credentials(token=TOKEN))


def test_a_shell_completes_with_the_token_and_is_quiet_without(closed: RefusingServer) -> None:
    completing = {
        "_FOREWARNED_COMPLETE": "bash_complete",
        "COMP_WORDS": "forewarned approve 0",
        "COMP_CWORD": "2",
    }

    invoke(FOREWARNED_CONTROL=closed.url, FOREWARNED_TOKEN=TOKEN, **completing)
    bad = invoke(FOREWARNED_CONTROL=closed.url, FOREWARNED_TOKEN="no token", **completing)

    assert closed.shown == [f"Bearer {TOKEN}"]
    assert (bad.stdout.strip(), bad.stderr) == ("", "")


def test_a_server_that_asks_for_none_takes_no_offence(served: Served) -> None:
    result = served.run("schedule", "reboot", "--vm", "web", FOREWARNED_TOKEN=TOKEN)

    assert result.exit_code == 0
    assert TOKEN not in result.output


def test_refusals_and_usage_are_told_apart() -> None:
    with (
        refusing_server() as closed,
        Control(closed.url) as control,
        pytest.raises(RefusedError) as caught,
    ):
        control.get("/v1/clock")
    with pytest.raises(UsageError):
        Control("http://192.0.2.1:1", credentials=Credentials(token=TOKEN))

    assert caught.value.code == "token_missing"
