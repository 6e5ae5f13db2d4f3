"""The agent's file: where it looks, what its hooks are, and which rules lead to them.

All mistakes in a file are reported at once, each with its line. The tables' Structs are the only
description: the reference in the manual is compared with them.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from forewarned.agent.config.rules import Rule
from forewarned.agent.hooks.kinds import KINDS, HookTable
from forewarned.agent.model import Leader
from forewarned.config.endpoints import endpoint_url
from forewarned.config.mistakes import KeyPath, MistakesError, any_of, did_you_mean, shown
from forewarned.config.tables import TableReader
from forewarned.config.toml import TomlFile
from forewarned.config.values import Address, LogFormat, LogLevel, or_off
from forewarned.targets.urls import check_url

ENDPOINT_VARIABLE: Final = "FOREWARNED_ENDPOINT"
AUTO: Final = "auto"

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LONGEST_POLL: Final = timedelta(minutes=1)
_LISTEN: Final = Address("127.0.0.1", 8172)


class SettingsError(MistakesError):
    pass


class Readiness(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Where agents report that they are ready, for `leader = "all-ready"`."""


class DirectoryReadiness(Readiness, frozen=True, kw_only=True, tag="directory"):
    """A directory that all the VMs of an event share."""

    path: Path
    """The directory. It must exist."""


class KubernetesReadiness(Readiness, frozen=True, kw_only=True, tag="kubernetes"):
    """Leases in a Kubernetes cluster."""

    namespace: Annotated[str, Meta(pattern="^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] = "default"
    """The namespace of the leases; the agent's role must allow it to use leases there."""
    server: str = ""
    """The API server's URL; if empty, that of the cluster it runs in."""
    credentials: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    """A directory with `token` and `ca.crt`, as Kubernetes mounts it."""

    def __post_init__(self) -> None:
        if self.server:
            check_url(self.server)


class ForewarnedReadiness(Readiness, frozen=True, kw_only=True, tag="forewarned"):
    """The Forewarned server that the events come from. Azure does not offer this."""


AnyReadiness = DirectoryReadiness | KubernetesReadiness | ForewarnedReadiness


class AgentTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table `[agent]`."""

    endpoint: Annotated[str, Meta(min_length=1)] = AUTO
    """The URL of the VM's metadata service; `auto` finds it as the SDK does. The variable
    FOREWARNED_ENDPOINT overrides it."""
    resource: Annotated[str, Meta(min_length=1)] = AUTO
    """This VM's name in events; `auto` asks the metadata service."""
    state: Path = Path("/var/lib/forewarned-agent")
    """The directory of the journal. It must survive a restart of the VM."""
    listen: Annotated[Address | None, or_off(partial(Address.parse, example=_LISTEN.port))] = (
        _LISTEN
    )
    """Where to serve /healthz, /readyz, /metrics and /status; or `off`."""
    poll: timedelta = timedelta(seconds=1)
    """The time between two reads of the document, 1m at most. From a Forewarned server, the agent
    learns of changes at once, through long polls."""
    ready_timeout: timedelta = timedelta(minutes=2)
    """With `leader = "all-ready"`: how long the agent waits for another agent that is silent."""
    readiness: AnyReadiness | None = None
    """Where agents report that they are ready; needed for `"all-ready"`."""
    log_level: LogLevel = LogLevel.INFO
    """The least severe level to log: `debug`, `info`, `warning` or `error`."""
    log_format: LogFormat = LogFormat.TEXT
    """`text` for people, `json` for programs."""

    def __post_init__(self) -> None:
        if self.endpoint != AUTO:
            endpoint_url(self.endpoint)
        if not timedelta(0) < self.poll <= _LONGEST_POLL:
            raise ValueError("poll must be more than 0s and at most 1m")
        if self.ready_timeout <= timedelta(0):
            raise ValueError("ready_timeout must be more than 0s")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """A file without mistakes."""

    path: Path
    agent: AgentTable
    hooks: Mapping[str, HookTable]
    rules: tuple[Rule, ...]

    @property
    def endpoint(self) -> str | None:
        """None to look for it."""
        return None if self.agent.endpoint == AUTO else self.agent.endpoint

    @property
    def resource(self) -> str | None:
        """None to ask for it."""
        return None if self.agent.resource == AUTO else self.agent.resource

    @property
    def journal(self) -> Path:
        return self.agent.state / "journal"


def load(path: Path, *, environ: Mapping[str, str] | None = None) -> AgentSettings:
    """Raises SettingsError. The environment is this program's own, unless another is given."""
    settings = _settings(TomlFile.load(path, error=SettingsError), path)
    endpoint = (os.environ if environ is None else environ).get(ENDPOINT_VARIABLE)
    if not endpoint:
        return settings
    try:
        agent = msgspec.structs.replace(settings.agent, endpoint=endpoint)
    except ValueError as error:
        raise SettingsError([f"environment {ENDPOINT_VARIABLE}: {error}"]) from error
    return replace(settings, agent=agent)


def parse(text: str, *, path: Path) -> AgentSettings:
    """Raises SettingsError."""
    return _settings(TomlFile.parse(text, source=str(path), error=SettingsError), path)


def _settings(file: TomlFile, path: Path) -> AgentSettings:
    reader = TableReader(path.parent)
    settings = _read(file.tables, path, reader)
    if settings is None or reader.mistakes:
        raise file.refusal(reader.mistakes)
    return settings


def _read(raw: Mapping[str, Any], path: Path, reader: TableReader) -> AgentSettings | None:
    parts = ("agent", "hooks", "rules")
    for key in raw.keys() - set(parts):
        reader.refuse((key,), f"there is no such table{did_you_mean(key, parts)}")
    agent = reader.table(raw.get("agent", {}), AgentTable, ("agent",))
    declared = raw.get("hooks", {})
    hooks = dict(_hooks(declared, reader))
    # With those that have mistakes of their own: they are not reported as missing, too.
    names = declared if isinstance(declared, Mapping) else {}
    rules = tuple(_rules(raw.get("rules", []), names, reader))
    for at, rule in rules:
        if rule.leader is Leader.ALL_READY and agent is not None and agent.readiness is None:
            reader.refuse(
                ("rules", at, "leader"),
                'needs "readiness" in [agent], which says where agents report that they are ready',
            )
    _check_order(rules, reader)
    if agent is None:
        return None
    return AgentSettings(
        path=path,
        agent=agent,
        hooks=MappingProxyType(hooks),
        rules=tuple(rule for _, rule in rules),
    )


def _hooks(declared: object, reader: TableReader) -> Iterator[tuple[str, HookTable]]:
    if not isinstance(declared, Mapping):
        reader.refuse(("hooks",), "expected tables like [hooks.drain]")
        return
    for name, raw in declared.items():
        path: KeyPath = ("hooks", name)
        if not _NAME.fullmatch(name):
            reader.refuse(
                path,
                "a hook's name has up to 64 letters, digits and . _ -, and starts with a letter or"
                " digit",
            )
        elif not isinstance(raw, Mapping):
            reader.refuse(path, f"expected a table, got {shown(raw)}")
        elif "kind" not in raw:
            reader.refuse(path, f"the field 'kind' is missing: expected {any_of([*KINDS])}")
        elif not isinstance(kind := raw["kind"], str) or kind not in KINDS:
            near = did_you_mean(str(kind), KINDS)
            reader.refuse((*path, "kind"), f"expected {any_of([*KINDS])}, got {shown(kind)}{near}")
        else:
            fields = {key: value for key, value in raw.items() if key != "kind"}
            hook = reader.table(fields, KINDS[kind], path)
            if hook is not None:
                _check_times(hook, path, reader)
                yield name, hook


def _check_times(hook: HookTable, path: KeyPath, reader: TableReader) -> None:
    if hook.timeout <= timedelta(0):
        reader.refuse((*path, "timeout"), "expected more than 0s")
    elif hook.expected is not None and hook.expected > hook.timeout:
        reader.refuse((*path, "expected"), "is longer than timeout")


def _rules(
    declared: object, hooks: Iterable[str], reader: TableReader
) -> Iterator[tuple[int, Rule]]:
    if not isinstance(declared, list):
        reader.refuse(("rules",), "expected tables like [[rules]]")
        return
    if not declared:
        reader.refuse((), "there are no rules, so the agent would never do anything: add [[rules]]")
    for at, raw in enumerate(declared):
        # As it is written: another mistake in the rule must not hide a name that is wrong.
        if isinstance(raw, Mapping):
            _check_steps(raw, ("rules", at), hooks, reader)
        rule = reader.table(raw, Rule, ("rules", at))
        if rule is not None:
            yield at, rule


def _check_steps(
    rule: Mapping[str, object], path: KeyPath, hooks: Iterable[str], reader: TableReader
) -> None:
    for key in ("prepare", "recover"):
        names = rule.get(key)
        if not isinstance(names, list):
            continue
        for at, name in enumerate(names):
            if not isinstance(name, str):
                continue
            if name not in hooks:
                near = did_you_mean(name, hooks)
                reader.refuse((*path, key, at), f"there is no [hooks.{name}]{near}")
            elif name in names[:at]:
                reader.refuse(
                    (*path, key, at), f"{name} is already in the list, and runs only once"
                )


def _check_order(rules: Iterable[tuple[int, Rule]], reader: TableReader) -> None:
    """Two rules of one name make `explain` ambiguous; a rule that no event reaches is a slip."""
    known: set[str] = set()
    takes_all: Rule | None = None
    for at, rule in rules:
        if rule.name in known:
            reader.refuse(("rules", at, "name"), f"another rule is named {shown(rule.name)}")
        known.add(rule.name)
        if takes_all is not None:
            why = f"no event reaches this rule: rule {shown(takes_all.name)} above matches them all"
            reader.refuse(("rules", at), why)
        if rule.takes_all:
            takes_all = rule
