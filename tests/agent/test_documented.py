"""What is shipped around the agent: its manual, and files to start from."""

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml  # type: ignore[import-untyped]  # its types are another package

from forewarned.agent.config.rules import EventType, Rule
from forewarned.agent.config.settings import (
    AgentSettings,
    AgentTable,
    DirectoryReadiness,
    ForewarnedReadiness,
    KubernetesReadiness,
    load,
    parse,
)
from forewarned.agent.hooks.kinds import KINDS, HookTable
from forewarned.agent.hooks.templates import PLACEHOLDERS
from forewarned.agent.matching import plan_for
from forewarned.agent.model import Leader
from forewarned.agent.rehearsal import NOTICE, a_rehearsed_event, fit
from forewarned.agent.status.metrics import Counters, render
from forewarned.agent.status.wire import AgentStatus
from forewarned.cli.agent import commands
from tests.builders import NOON
from tools.agent_reference import described, page_with, reference

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "agent"
BASE = ROOT / "packaging" / "kubernetes" / "agent"
MANUAL = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "agent-file.md").read_text(encoding="utf-8")
STRUCTS: list[type[msgspec.Struct]] = [
    AgentTable,
    DirectoryReadiness,
    KubernetesReadiness,
    ForewarnedReadiness,
    Rule,
    HookTable,
    *KINDS.values(),
]


# --- the manual ----------------------------------------------------------------------------------


def test_the_reference_is_what_the_structs_say() -> None:
    hint = "run .venv/bin/python -m tools.agent_reference"

    assert page_with(REFERENCE, reference()) == REFERENCE, hint


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_every_field_of_the_file_has_words_of_its_own(struct: type[msgspec.Struct]) -> None:
    words = described(struct)

    assert {name for name, text in words.items() if not text.endswith(".")} == set()
    assert struct.__doc__
    assert all(f"| `{name}` |" in REFERENCE for name in words)


def test_every_kind_of_hook_has_a_section() -> None:
    assert set(re.findall(r"^### `(\w+)`$", REFERENCE, re.MULTILINE)) == set(KINDS)


def test_every_placeholder_is_in_the_manual() -> None:
    listed = REFERENCE.partition("## Placeholders")[2]

    assert tuple(re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)) == PLACEHOLDERS


@pytest.mark.parametrize("name", ["agent.toml", "forewarned-agent.service"])
def test_the_manual_shows_the_shipped_files_as_they_are(name: str) -> None:
    assert f"\n{(EXAMPLES / name).read_text(encoding='utf-8')}```\n" in MANUAL


def test_the_file_to_try_prepares_and_recovers_as_a_vm_of_the_demo_fleet() -> None:
    tried = MANUAL.partition("## Try it")[2].partition("```toml\n")[2].partition("```")[0]

    settings = parse(tried, path=Path("/home/me/agent.toml"))

    assert settings.endpoint == "http://127.0.0.1:8169/vm/web"
    [rule] = settings.rules
    assert (rule.prepare, rule.recover) == (("tell", "drain"), ("tell",))
    assert set(settings.hooks) == {"tell", "drain"}


def test_every_number_is_in_the_manual() -> None:
    status = AgentStatus(
        now=NOON,
        version="",
        resource="",
        endpoint="",
        started_at=NOON,
        healthy=True,
        ready=True,
    )
    numbers = render(status, Counters(), age=None)
    table = MANUAL.partition("after `forewarned_agent_`")[2].partition("\n\n")[0]
    names = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]

    shown = re.findall(r"^# TYPE forewarned_agent_(\w+)", numbers, re.MULTILINE)

    assert shown == re.findall(r"`(\w+)", "".join(names))


def test_without_a_place_for_the_reference_nothing_is_written() -> None:
    with pytest.raises(ValueError, match="no place"):
        page_with("a page", "a reference")


# --- files to start from -------------------------------------------------------------------------


def deployed() -> dict[str, dict[str, Any]]:
    """What the base for Kubernetes consists of: any YAML, by kind."""
    texts = (BASE / f"{name}.yaml" for name in ("kustomization", "access", "daemonset"))
    return {
        each["kind"]: each
        for text in texts
        for each in yaml.safe_load_all(text.read_text(encoding="utf-8"))
    }


def in_the_cluster() -> AgentSettings:
    return load(BASE / "agent.toml", environ={})


def on_the_vm() -> AgentSettings:
    return load(EXAMPLES / "agent.toml", environ={})


@pytest.mark.parametrize("read", [on_the_vm, in_the_cluster])
def test_a_shipped_file_is_in_order_and_misses_no_type_of_event(read: Any) -> None:
    settings: AgentSettings = read()

    assert set(NOTICE) == set(EventType)
    for type_ in NOTICE:
        event = a_rehearsed_event(type_, me="web_0", now=NOON)
        found = fit(type_, plan_for(settings, event, NOON), {})
        assert found.rule
        assert not found.is_missed, type_
        assert found.left_out == ()


def understood(words: list[str]) -> dict[str, Any]:
    """What `forewarned agent run` makes of its arguments."""
    return commands.run.make_context("run", words).params


def test_the_unit_starts_the_agent_where_its_file_and_its_state_are() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # as configparser documents it
    unit.read(EXAMPLES / "forewarned-agent.service")
    service = unit["Service"]

    program, *words = shlex.split(service["ExecStart"])

    assert Path(program).name == "forewarned"
    assert words[:2] == ["agent", "run"]
    assert understood(words[2:])["config"] == Path("/etc/forewarned/agent.toml")
    assert on_the_vm().agent.state == Path("/var/lib") / service["StateDirectory"]
    assert service["Restart"] == "always"
    assert service["NoNewPrivileges"] == "yes"


def test_systemd_has_nothing_to_say_about_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: nobody looks at the unit but us")
    text = (EXAMPLES / "forewarned-agent.service").read_text(encoding="utf-8")
    unit = tmp_path / "forewarned-agent.service"
    # It looks for the program too.
    unit.write_text(text.replace("/opt/forewarned/bin/forewarned", "/bin/true"))

    done = subprocess.run(
        [analyze, "verify", "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_daemonset_starts_the_agent_with_what_its_file_needs() -> None:
    objects = deployed()
    pod = objects["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    settings = in_the_cluster()

    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in pod["volumes"]}

    assert container["command"] == ["forewarned"]
    assert container["args"][:2] == ["agent", "run"]
    config = understood(container["args"][2:])["config"]
    [made] = objects["Kustomization"]["configMapGenerator"]
    assert volumes[mounts[str(config.parent)]]["configMap"] == {"name": made["name"]}
    assert made["files"] == [config.name]
    assert "hostPath" in volumes[mounts[str(settings.agent.state)]]
    assert pod["hostNetwork"] is True
    assert {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}} in (
        container["env"]
    )
    assert any(rule.leader is Leader.ALL_READY for rule in settings.rules)
    assert isinstance(settings.agent.readiness, KubernetesReadiness)
    assert settings.agent.readiness.namespace == objects["Kustomization"]["namespace"]
    assert pod["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]
