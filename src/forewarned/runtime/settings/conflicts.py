"""Which settings contradict each other."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from forewarned.config.values import DatabaseUrl, show
from forewarned.metadata.options import EmulatorAccess
from forewarned.runtime.settings.table import ControlAccess, Mode, Settings

DEFAULT: Final = "default"
"""The origin of a value that was given nowhere."""
AZURE_ADDRESS: Final = "169.254.169.254"
"""Where clients look by themselves. It never leaves the machine or its link."""


def conflicts(settings: Settings, origin: Mapping[str, str]) -> Iterator[str]:
    """Settings that are sound one by one, but not together."""

    def refuse(name: str, why: str) -> str:
        return f"{origin[name]}: {name} = {show(getattr(settings, name))}: {why}"

    if settings.mode is Mode.SERVICE:
        if not settings.clock.is_real:
            yield refuse("clock", "real VMs live in real time: use real, or --mode emulator")
        if settings.default_vm is not None:
            yield refuse(
                "default_vm",
                "service mode refuses callers whose VM it does not know: omit it, or use --mode"
                " emulator",
            )
        if settings.emulator_access is not EmulatorAccess.LOOPBACK:
            yield refuse(
                "emulator_access",
                "service mode identifies each VM by its address or port mark, so callers can't"
                " choose which VM they are: omit it, or use --mode emulator",
            )
        if not settings.control.is_loopback and settings.control_access is ControlAccess.OPEN:
            yield refuse(
                "control_access",
                f"anyone who reaches {settings.control} would control the fleet: use token, or "
                "127.0.0.1 for --control",
            )
    elif settings.is_on_network:
        yield from _unspoken_openness(settings, origin, refuse)
    else:
        yield from _off_loopback(settings, refuse)
    if settings.replay is not None and (why := _why_no_replay(settings)):
        yield refuse("replay", why)
    yield from _half_certificates(settings, refuse)
    if settings.feed is not None and (why := _why_no_feed(settings)):
        yield refuse("feed", why)
    yield from _same_addresses(settings, refuse)
    if why := _why_unusable(settings.store, settings.mode):
        yield f"{origin['store']}: store = {settings.store}: {why}"


def _off_loopback(settings: Settings, refuse: Callable[[str, str], str]) -> Iterator[str]:
    """Listeners of an emulator that only users of its own machine should reach."""
    if not settings.metadata.is_loopback and settings.metadata.host != AZURE_ADDRESS:
        yield refuse(
            "metadata",
            "in emulator mode any caller can be any VM, so it listens on loopback only: use "
            "127.0.0.1, --emulator-access network if everyone who reaches it may act as any VM, or "
            "--mode service",
        )
    if not settings.control.is_loopback:
        yield refuse(
            "control",
            "an emulator is for users of its own machine, so it listens on loopback only: use "
            "127.0.0.1 and a tunnel, --emulator-access network, or --mode service",
        )
    if settings.arm and not settings.arm.is_loopback:
        yield refuse(
            "arm",
            "emulator mode requires no sign-in, so it listens on loopback only: use 127.0.0.1, "
            "--emulator-access network, or --mode service",
        )


def _unspoken_openness(
    settings: Settings, origin: Mapping[str, str], refuse: Callable[[str, str], str]
) -> Iterator[str]:
    """An emulator on a network is open to it if someone said so, and never by default."""
    for name, at in (("control", settings.control), ("arm", settings.arm)):
        if at is None or at.is_loopback or origin["control_access"] != DEFAULT:
            continue
        yield refuse(
            name,
            "say who may control this emulator: --control-access open for everyone who reaches"
            " it, or token",
        )


def _same_addresses(settings: Settings, refuse: Callable[[str, str], str]) -> Iterator[str]:
    listeners = [settings.metadata, settings.control, settings.arm, settings.feed]
    fixed = [one for one in listeners if one is not None and one.port]
    if len(set(fixed)) < len(fixed):
        yield refuse("control", "metadata, control, arm and feed need different addresses")


def _half_certificates(settings: Settings, refuse: Callable[[str, str], str]) -> Iterator[str]:
    certificate, key = "tls_certificate", "tls_key"
    for given, missing in ((certificate, key), (key, certificate)):
        if getattr(settings, given) is not None and getattr(settings, missing) is None:
            yield refuse(given, f"a certificate and its key go together: give {missing} too")


def _why_no_replay(settings: Settings) -> str | None:
    if settings.mode is Mode.SERVICE:
        return "real VMs are told of real events only: omit --mode service"
    if settings.fleet is not None:
        return "the VMs are those of the recording: omit --fleet"
    if settings.startup is not None:
        return "the events are those of the recording: omit --startup"
    return None


def _why_no_feed(settings: Settings) -> str | None:
    if settings.mode is not Mode.SERVICE:
        return "an emulator's VMs have no hypervisors: use --mode service"
    if settings.store is not None:
        return "where servers share a store, run one of them on each hypervisor: omit --feed"
    return (
        None
        if settings.workers
        else "with --workers 0, the server is one process and has no feed: use --workers 1"
    )


def _why_unusable(store: DatabaseUrl | None, mode: Mode) -> str | None:
    if store is None:
        return None
    if mode is not Mode.SERVICE:
        return (
            "an emulator has its own time and VMs, so it can't share a database: use --mode"
            " service, or omit --store"
        )
    try:
        # Here, because a server without PostgreSQL needs no client for it.
        from forewarned.storage.postgres.url import target  # noqa: PLC0415
    except ImportError:
        return "PostgreSQL's client is not installed: run `pip install 'forewarned[postgres]'`"
    try:
        target(store)
    except ValueError as wrong:
        return str(wrong)
    return None
