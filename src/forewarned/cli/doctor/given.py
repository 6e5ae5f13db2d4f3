"""What a server is given: its settings, its packages, the files that declare its fleet."""

from collections.abc import Iterator

from forewarned.cli.doctor.finding import Finding, problem, warning
from forewarned.control.fleet.file import FleetFileError
from forewarned.control.startup.files import load_startup
from forewarned.runtime.settings import Mode, Resolved, Settings, SettingsError
from forewarned.runtime.startup import given_files


def bad_settings(error: SettingsError) -> Iterator[Finding]:
    for line in error.mistakes:
        where, _, what = line.partition(": ")
        yield problem(
            "bad_settings",
            where=where,
            what=what,
            todo="`forewarned serve --help` says what each setting may be.",
        )


def of_fleet(settings: Settings) -> Iterator[Finding]:
    try:
        load_startup(given_files(settings))
    except FleetFileError as error:
        for line in error.mistakes:
            where, _, what = line.partition(": ")
            yield problem("bad_fleet", where=where, what=what, todo="Correct the file.")


def of_settings(resolved: Resolved) -> Iterator[Finding]:
    settings = resolved.settings
    is_service = settings.mode is Mode.SERVICE
    if is_service and settings.metadata.is_loopback and settings.feed is None:
        yield warning(
            "metadata_on_loopback",
            where=f"metadata = {settings.metadata}",
            what="VMs can't reach this address: only programs on this machine can",
            todo="Set metadata to an address that VMs reach, such as 169.254.169.254:80.",
        )
    if settings.is_on_network:
        yield warning(
            "emulator_on_network",
            where=resolved.origin["emulator_access"],
            what="everyone who reaches this emulator can act as any VM",
            todo="Use it only in a network of containers, or omit emulator_access.",
        )
