"""Every kind of hook, by the name that `kind` has in the agent's file."""

from collections.abc import Mapping
from typing import Final

from forewarned.agent.hooks.command import CommandHook
from forewarned.agent.hooks.flag import FlagHook
from forewarned.agent.hooks.haproxy import HaproxyHook
from forewarned.agent.hooks.http import HttpHook
from forewarned.agent.hooks.kubernetes import KubernetesHook
from forewarned.agent.hooks.log import LogHook
from forewarned.agent.hooks.notify import NotifyHook
from forewarned.agent.hooks.postgresql import PostgresqlHook
from forewarned.agent.hooks.systemd import SystemdHook
from forewarned.agent.hooks.table import HookTable

__all__ = ["KINDS", "HookTable"]

KINDS: Final[Mapping[str, type[HookTable]]] = {
    "command": CommandHook,
    "flag": FlagHook,
    "haproxy": HaproxyHook,
    "http": HttpHook,
    "kubernetes": KubernetesHook,
    "log": LogHook,
    "notify": NotifyHook,
    "postgresql": PostgresqlHook,
    "systemd": SystemdHook,
}
