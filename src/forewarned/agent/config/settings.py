"""The agent's file: where it looks, what its hooks are, and which rules lead to them.

All that is wrong with a file is told at once, each with its line. The tables' Structs are the one
description: the reference in the manual is compared with them.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta
from typing_extensions import override

from forewarned.agent.config.rules import Rule
from forewarned.agent.config.tables import Reader, any_of, did_you_mean, shown
from forewarned.agent.hooks import KINDS, HookSettings
from forewarned.agent.model import Leader
from forewarned.agent.targets.web import check_url
from forewarned.client._endpoint.discovery import endpoint_url
from forewarned.config.toml import KeyPath, key_lines, line_of, load_toml, show_path

DEFAULT_FILE: Final = Path("/etc/forewarned/agent.toml")
ENDPOINT_VARIABLE: Final = "FOREWARNED_ENDPOINT"
AUTO: Final = "auto"

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LISTEN: Final = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:/]+)):(?P<port>[0-9]{1,5})"
)
_TOML_LINE: Final = re.compile(r"(?P<what>.*) \(at line (?P<line>[0-9]+), column [0-9]+\)")
_LONGEST_POLL: Final = timedelta(minutes=1)


class SettingsError(Exception):
    """All that is wrong with the file, a line each: `agent.toml:14: hooks.drain.timeout: …`."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class Listen(NamedTuple):
    """Where the agent tells how it is; `host` is empty for nowhere."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Listen":
        if text == "off":
            return cls("", 0)
        found = _LISTEN.fullmatch(text)
        if found is None or int(found["port"]) > 65535:
            raise ValueError(f"expected HOST:PORT, like 127.0.0.1:8172, or off, got {shown(text)}")
        return cls(found["ipv6"] or found["host"], int(found["port"]))

    @property
    def is_off(self) -> bool:
        return not self.host

    @override
    def __str__(self) -> str:
        if self.is_off:
            return "off"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class Readiness(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Where agents tell each other that they are ready, for `leader = "all-ready"`."""


class DirectoryReadiness(Readiness, frozen=True, kw_only=True, tag="directory"):
    """A directory that all the VMs of an event share."""

    path: Annotated[Path, Meta(description="The directory; it must exist.")]


class KubernetesReadiness(Readiness, frozen=True, kw_only=True, tag="kubernetes"):
    """Leases in a Kubernetes cluster."""

    namespace: Annotated[
        str,
        Meta(
            pattern="^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            description="Where the leases are; the agent's role must reach it.",
        ),
    ] = "default"
    server: Annotated[
        str, Meta(description="The API server's URL; empty for that of the cluster it runs in.")
    ] = ""
    credentials: Annotated[
        Path, Meta(description="A directory with `token` and `ca.crt`, as Kubernetes mounts it.")
    ] = Path("/var/run/secrets/kubernetes.io/serviceaccount")

    def __post_init__(self) -> None:
        if self.server:
            check_url(self.server)


class ForewarnedReadiness(Readiness, frozen=True, kw_only=True, tag="forewarned"):
    """The Forewarned server that the events come from; Azure has no such thing."""


AnyReadiness = DirectoryReadiness | KubernetesReadiness | ForewarnedReadiness


class AgentTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table `[agent]`."""

    endpoint: Annotated[
        str,
        Meta(
            min_length=1,
            description="Where the VM's metadata is, as a URL; `auto` looks as the SDK does."
            " The variable FOREWARNED_ENDPOINT wins.",
        ),
    ] = AUTO
    resource: Annotated[
        str,
        Meta(
            min_length=1,
            description="This VM's name as events have it; `auto` asks the metadata.",
        ),
    ] = AUTO
    state: Annotated[
        Path, Meta(description="Directory of the journal. It must outlive a restart of the VM.")
    ] = Path("/var/lib/forewarned-agent")
    listen: Annotated[
        Listen, Meta(description="Where /healthz, /readyz, /metrics and /status are; or `off`.")
    ] = Listen("127.0.0.1", 8172)
    poll: Annotated[
        timedelta,
        Meta(
            description="How often the document is read, up to 1m. A Forewarned server that"
            " answers long polls is asked only when there is news."
        ),
    ] = timedelta(seconds=1)
    ready_timeout: Annotated[
        timedelta,
        Meta(
            description='With `leader = "all-ready"`: how long another VM\'s agent may be silent'
            " before it is waited for no longer."
        ),
    ] = timedelta(minutes=2)
    readiness: Annotated[
        AnyReadiness | None,
        Meta(description='Where agents tell that they are ready; needed for `"all-ready"`.'),
    ] = None
    log_level: Annotated[LogLevel, Meta(description="The least severe line to log.")] = (
        LogLevel.INFO
    )
    log_format: Annotated[
        LogFormat, Meta(description="`text` for people, `json` for programs.")
    ] = LogFormat.TEXT

    def __post_init__(self) -> None:
        if self.endpoint != AUTO:
            endpoint_url(self.endpoint)
        if not timedelta(0) < self.poll <= _LONGEST_POLL:
            raise ValueError("poll is more than 0s and at most 1m")
        if self.ready_timeout <= timedelta(0):
            raise ValueError("ready_timeout is more than 0s")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """A file that was found in order."""

    path: Path
    agent: AgentTable
    hooks: Mapping[str, HookSettings]
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
    try:
        # Editors on Windows put a mark before the text, which is no part of it.
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError([f"{path}: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise SettingsError([f"{path}: not in UTF-8, which TOML always is"]) from error
    settings = parse(text, path=path)
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
    try:
        raw = load_toml(text)
    except ValueError as error:
        placed = _TOML_LINE.fullmatch(str(error))
        what, line = (placed["what"], placed["line"]) if placed else (error, text.count("\n") + 1)
        where = f"{path}:{line}: {what}"
        raise SettingsError([where]) from error
    reader = Reader(path.parent)
    settings = _read(raw, path, reader)
    if settings is not None and not reader.faults:
        return settings
    lines = key_lines(text)
    placed_faults = sorted(
        ((line_of(fault.path, lines), fault) for fault in reader.faults), key=itemgetter(0)
    )
    raise SettingsError(
        f"{path}:{line}: {show_path(fault.path)}: {fault.why}".replace(": : ", ": ")
        for line, fault in placed_faults
    )


def _read(raw: Mapping[str, Any], path: Path, reader: Reader) -> AgentSettings | None:
    parts = ("agent", "hooks", "rules")
    for key in raw.keys() - set(parts):
        reader.blame((key,), f"there is no such table{did_you_mean(key, parts)}")
    agent = reader.table(raw.get("agent", {}), AgentTable, ("agent",))
    declared = raw.get("hooks", {})
    hooks = dict(_hooks(declared, reader))
    # Also those that are wrong: they are told of once, and not as missing too.
    names = declared if isinstance(declared, Mapping) else {}
    rules = tuple(_rules(raw.get("rules", []), names, reader))
    for at, rule in rules:
        if rule.leader is Leader.ALL_READY and agent is not None and agent.readiness is None:
            reader.blame(
                ("rules", at, "leader"), 'needs "readiness" in [agent], or agents can\'t tell'
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


def _hooks(declared: object, reader: Reader) -> Iterator[tuple[str, HookSettings]]:
    if not isinstance(declared, Mapping):
        reader.blame(("hooks",), "expected tables like [hooks.drain]")
        return
    for name, raw in declared.items():
        path: KeyPath = ("hooks", name)
        if not _NAME.fullmatch(name):
            reader.blame(path, "a hook's name has up to 64 letters, digits and . _ -")
        elif not isinstance(raw, Mapping):
            reader.blame(path, f"expected a table, got {shown(raw)}")
        elif "kind" not in raw:
            reader.blame(path, f"the field kind is missing: expected {any_of([*KINDS])}")
        elif not isinstance(kind := raw["kind"], str) or kind not in KINDS:
            near = did_you_mean(str(kind), KINDS)
            reader.blame((*path, "kind"), f"expected {any_of([*KINDS])}, got {shown(kind)}{near}")
        else:
            fields = {key: value for key, value in raw.items() if key != "kind"}
            hook = reader.table(fields, KINDS[kind], path)
            if hook is not None:
                _check_times(hook, path, reader)
                yield name, hook


def _check_times(hook: HookSettings, path: KeyPath, reader: Reader) -> None:
    if hook.timeout <= timedelta(0):
        reader.blame((*path, "timeout"), "expected more than 0s")
    elif hook.expected is not None and hook.expected > hook.timeout:
        reader.blame((*path, "expected"), "is longer than timeout, after which it is ended")


def _rules(declared: object, hooks: Iterable[str], reader: Reader) -> Iterator[tuple[int, Rule]]:
    if not isinstance(declared, list):
        reader.blame(("rules",), "expected tables, each below [[rules]]")
        return
    if not declared:
        reader.blame((), "there are no rules, so nothing would ever be done: add [[rules]]")
    for at, raw in enumerate(declared):
        # As it was written: what else is wrong with the rule must not hide a name that is.
        if isinstance(raw, Mapping):
            _check_steps(raw, ("rules", at), hooks, reader)
        rule = reader.table(raw, Rule, ("rules", at))
        if rule is not None:
            yield at, rule


def _check_steps(
    rule: Mapping[str, object], path: KeyPath, hooks: Iterable[str], reader: Reader
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
                reader.blame((*path, key, at), f"there is no [hooks.{name}]{near}")
            elif name in names[:at]:
                reader.blame((*path, key, at), f"{name} is in the list already: it runs only once")


def _check_order(rules: Iterable[tuple[int, Rule]], reader: Reader) -> None:
    """A name twice would make `explain` ambiguous; a rule nobody gets to is a slip of the hand."""
    known: set[str] = set()
    takes_all: Rule | None = None
    for at, rule in rules:
        if rule.name in known:
            reader.blame(("rules", at, "name"), f"another rule is called {shown(rule.name)}")
        known.add(rule.name)
        if takes_all is not None:
            why = f"no event gets as far: rule {shown(takes_all.name)} before it takes all"
            reader.blame(("rules", at), why)
        if rule.takes_all:
            takes_all = rule
