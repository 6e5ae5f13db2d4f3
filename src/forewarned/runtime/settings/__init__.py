"""Every setting of the server, where its value came from, and what contradicts what."""

from forewarned.runtime.settings.actuators import DeclaredActuators
from forewarned.runtime.settings.conflicts import AZURE_ADDRESS
from forewarned.runtime.settings.loading import (
    CONFIG_VARIABLE,
    DEFAULT_FILE,
    Resolved,
    SettingsError,
    load,
    load_here,
)
from forewarned.runtime.settings.subscriptions import DeclaredSubscriptions
from forewarned.runtime.settings.table import (
    SETTINGS,
    Approve,
    ControlAccess,
    HostFailureType,
    Mode,
    Setting,
    Settings,
)

__all__ = [
    "AZURE_ADDRESS",
    "CONFIG_VARIABLE",
    "DEFAULT_FILE",
    "SETTINGS",
    "Approve",
    "ControlAccess",
    "DeclaredActuators",
    "DeclaredSubscriptions",
    "HostFailureType",
    "Mode",
    "Resolved",
    "Setting",
    "Settings",
    "SettingsError",
    "load",
    "load_here",
]
