"""Every kind of hook, by the name that `kind` has in the agent's file."""

from collections.abc import Mapping
from typing import Final

from forewarned.agent.hooks.command import CommandSettings
from forewarned.agent.hooks.flag import FlagSettings
from forewarned.agent.hooks.haproxy import HaproxySettings
from forewarned.agent.hooks.http import HttpSettings
from forewarned.agent.hooks.kubernetes import KubernetesSettings
from forewarned.agent.hooks.log import LogSettings
from forewarned.agent.hooks.notify import NotifySettings
from forewarned.agent.hooks.postgresql import PostgresqlSettings
from forewarned.agent.hooks.settings import HookSettings
from forewarned.agent.hooks.systemd import SystemdSettings

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
