"""Every kind of hook, by the name that `kind` has in the agent's file."""

from collections.abc import Mapping
from typing import Final

from notbefore.agent.hooks.command import CommandSettings
from notbefore.agent.hooks.flag import FlagSettings
from notbefore.agent.hooks.haproxy import HaproxySettings
from notbefore.agent.hooks.http import HttpSettings
from notbefore.agent.hooks.kubernetes import KubernetesSettings
from notbefore.agent.hooks.log import LogSettings
from notbefore.agent.hooks.notify import NotifySettings
from notbefore.agent.hooks.postgresql import PostgresqlSettings
from notbefore.agent.hooks.settings import HookSettings
from notbefore.agent.hooks.systemd import SystemdSettings

__all__ = ["KINDS", "HookSettings"]

KINDS: Final[Mapping[str, type[HookSettings]]] = {
    "command": CommandSettings,
    "flag": FlagSettings,
    "haproxy": HaproxySettings,
    "http": HttpSettings,
    "kubernetes": KubernetesSettings,
    "log": LogSettings,
    "notify": NotifySettings,
    "postgresql": PostgresqlSettings,
    "systemd": SystemdSettings,
}
