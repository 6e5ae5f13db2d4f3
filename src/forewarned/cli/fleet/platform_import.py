"""Fleet files from what a platform says about its VMs."""

import asyncio
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

import click
import msgspec

from forewarned.cli.failures import RefusedError
from forewarned.cli.fleet.file_output import output_option, write_fleet
from forewarned.cli.session import json_option
from forewarned.cli.wording import count
from forewarned.service.fleet.validation import is_name
from forewarned.service.sources.listing import ListedVm, Listing

_NO_ADDRESS: Final = "its platform gives it no address: add one, or a port_mark"
_TAKEN: Final = "another VM of this file has its name: rename one of them"


@click.group(name="import")
def import_() -> None:
    """Print a fleet file with the VMs that a platform has."""


@import_.command()
@click.argument("uris", metavar="URI…", nargs=-1, required=True)
@output_option
@json_option
def libvirt(*, uris: tuple[str, ...], output: Path | None) -> None:
    """Print a fleet file with the libvirt VMs at each URI. Needs no server.

    Addresses come from the configuration of domains and networks. VMs without one are in the file
    as comments.
    """
    from forewarned.actuators.libvirt.installation import LibvirtMissingError, require

    try:
        require()
    except LibvirtMissingError as error:
        raise RefusedError(str(error), code="no_libvirt") from error
    from forewarned.actuators.libvirt.inventory import list_vms

    listing = asyncio.run(list_vms(uris))
    if not listing.is_complete:
        raise RefusedError(
            "not every libvirt host answered; nothing was written",
            *listing.silent.values(),
            code="not_listed",
        )
    _write(listing, output, platform="libvirt")


@import_.command()
@click.option("--auth-url", metavar="URL", required=True, help="Keystone's URL.")
@click.option(
    "--credential-id",
    metavar="ID",
    required=True,
    help="Id of an application credential of a user with the role admin.",
)
@click.option(
    "--secret-file", metavar="FILE", required=True, help="The file with the credential's secret."
)
@click.option(
    "--region",
    metavar="NAME",
    default="",
    help="Region of the cloud [default: the first in the catalog].",
)
@click.option(
    "--interface",
    type=click.Choice(["public", "internal", "admin"]),
    default="public",
    show_default=True,
    help="Which of Nova's URLs to use.",
)
@click.option(
    "--cloud-ca",
    metavar="FILE",
    help="The certificate of the authority that signed the cloud's, if the system does not trust"
    " it.",
)
@output_option
@json_option
def openstack(
    *,
    auth_url: str,
    credential_id: str,
    secret_file: str,
    region: str,
    interface: str,
    cloud_ca: str | None,
    output: Path | None,
) -> None:
    """Print a fleet file with the VMs of an OpenStack cloud, of all projects. Needs no server.

    Addresses are those of the VMs' ports. VMs without one are in the file as comments.
    Anti-affinity groups become availability sets.
    """
    from forewarned.actuators.driver import DriverError
    from forewarned.actuators.openstack.inventory import list_vms
    from forewarned.actuators.openstack.session import Cloud, Interface

    cloud = Cloud(
        auth_url=auth_url,
        credential_id=credential_id,
        secret_file=secret_file,
        region=region,
        interface=Interface(interface),
        ca_file=cloud_ca,
    )
    try:
        listing = asyncio.run(list_vms(cloud))
    except DriverError as error:
        raise RefusedError(
            "the cloud's VMs can't be listed; nothing was written", str(error), code="not_listed"
        ) from error
    _write(listing, output, platform="openstack")


def _write(listing: Listing, output: Path | None, *, platform: str) -> None:
    text = "".join(fleet_file(listing, platform=platform))
    write_fleet(text, output, source="the imported fleet")


def fleet_file(listing: Listing, *, platform: str) -> Iterator[str]:
    """Its lines. A VM that can't be declared as it is becomes a comment that says why."""
    names: set[str] = set()
    sets: list[ListedVm] = []
    yield f"# {count(len(listing.vms), 'VM')}, listed by forewarned fleet import {platform}.\n"
    for vm in listing.vms:
        if why := _objection(vm, names):
            yield "\n"
            yield from (f"# {line}" for line in _declared(vm, why))
        elif vm.availability_set:
            sets.append(vm)
        else:
            yield from _declared(vm)
        names.add(vm.name.casefold())
    for name, members in groupby(
        sorted(sets, key=lambda vm: vm.availability_set), key=lambda vm: vm.availability_set
    ):
        yield from _availability_set(name, list(members))


def _objection(vm: ListedVm, names: set[str]) -> str | None:
    if not is_name(vm.name):
        return "its name has characters that a VM's name in a fleet can't have"
    if vm.name.casefold() in names:
        return _TAKEN
    return None if vm.address or vm.port_mark is not None else _NO_ADDRESS


def _declared(vm: ListedVm, why: str = "") -> Iterator[str]:
    yield f"{vm.name}: {why}\n" if why else "\n"
    yield "[[vms]]\n"
    yield from (f"{key} = {value}\n" for key, value in _fields(vm).items())
    if vm.zone:
        yield f"zone = {_text(vm.zone)}\n"


def _availability_set(name: str, members: list[ListedVm]) -> Iterator[str]:
    yield f"\n[[availability_sets]]\nname = {_text(name)}\n"
    if len({vm.host for vm in members}) < len(members):
        yield "# Some of its VMs share a host, and a host can be in only one update domain.\n"
        yield "update_domains = 1\n"
    yield "vms = [\n"
    for vm in members:
        fields = ", ".join(f"{key} = {value}" for key, value in _fields(vm).items())
        yield f"    {{ {fields} }},\n"
    yield "]\n"


def _fields(vm: ListedVm) -> dict[str, str]:
    given = {
        "name": vm.name,
        "vm_id": vm.vm_id,
        "host": vm.host,
        "address": vm.address,
        "interface": vm.interface,
    }
    mark = {} if vm.port_mark is None else {"port_mark": str(vm.port_mark)}
    return {key: _text(value) for key, value in given.items() if value} | mark


def _text(value: str) -> str:
    """As TOML writes it: its basic strings are JSON's."""
    return msgspec.json.encode(value).decode()
