"""Hosts: the machines that VMs run on."""

from pathlib import Path
from urllib.parse import quote

import click

from forewarned.cli.commands.serve import (
    data_folder,
    folder_options,
    listener_options,
    load_settings,
    refuse_missing_packages,
)
from forewarned.cli.failures import RefusedError, UsageError
from forewarned.cli.hosts.drains import drain, list_hosts, status, undrain
from forewarned.cli.session import Session, with_session
from forewarned.cli.wording import count
from forewarned.config.values import Address
from forewarned.control.v1 import wire


@click.group(commands=[list_hosts, drain, status, undrain])
def host() -> None:
    """Drain hosts, and serve VMs on their own host."""


@host.command()
@click.argument("name", metavar="HOST")
@click.option(
    "--metadata",
    metavar="ADDRESS",
    help="Where VMs of the host reach the metadata listener [default: 169.254.169.254].",
)
@click.option(
    "--every-vm",
    is_flag=True,
    help="Include the VMs of other hosts, so that they are known here as soon as they are moved"
    " here.",
)
@with_session
def rules(session: Session, *, name: str, metadata: str | None, every_vm: bool) -> None:
    """Print nftables rules for HOST, to be loaded there with 'nft -f -'.

    They mark the packets from each VM's port with the VM's port mark, and keep VMs from using the
    addresses of other VMs. A VM needs an 'interface' in the fleet, and a 'port_mark' if the
    server's setting 'identity' is 'port-marks'.
    """
    answer = session.control.get(
        f"/v1/hosts/{quote(name, safe='')}/rules",
        {"metadata": metadata, "every_vm": "true" if every_vm else None},
    )
    if session.is_json:
        click.echo(answer.as_json())
        return
    found = answer.read(wire.HostRules)
    click.echo(found.rules, nl=False)
    if found.left_out:
        click.echo(_warning(found.left_out), err=True)


def _warning(left_out: tuple[str, ...]) -> str:
    few = ", ".join(left_out[:5]) + (", …" if len(left_out) > 5 else "")
    return (
        f"{count(len(left_out), 'VM')} left out: the fleet has no 'interface' for {few}. Nothing"
        " that they send is marked or checked."
    )


@host.command()
@click.argument("name", metavar="HOST")
@folder_options
def certificate(*, name: str, data: str | None, config: Path | None) -> None:
    """Print what 'forewarned host serve' needs on HOST: a private key and certificates.

    Run it where the server's state is, and keep the output secret: with it, any machine can read
    the documents of HOST's VMs and approve events in their names. It is valid for 13 months.
    """
    refuse_missing_packages()
    from forewarned.clock import wall_clock
    from forewarned.core.ids import HostName
    from forewarned.security import host_certificates
    from forewarned.security.certificates import CertificateError

    try:
        made = host_certificates.issue(data_folder(config, data), HostName(name), now=wall_clock())
    except CertificateError as error:
        raise RefusedError(str(error), code="no_authority") from error
    click.echo(made.decode(), nl=False)


@host.command()
@click.option(
    "--feed",
    required=True,
    metavar="HOST:PORT",
    help="Address of the server's feed for hypervisors, as in its setting 'feed'.",
)
@click.option(
    "--certificate",
    "bundle",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What 'forewarned host certificate' printed for this host.",
)
@click.option(
    "--metadata",
    default="169.254.169.254:80",
    metavar="HOST:PORT",
    help="Where VMs of this host read their scheduled events [default: 169.254.169.254:80].",
)
@listener_options
def serve(*, feed: str, bundle: Path, **flags: str | None) -> None:
    """Serve the VMs of this host, on the host itself, until interrupted.

    The documents come from a server. While the server can't be reached, VMs read the last documents
    it sent, and approvals get 503.
    """
    refuse_missing_packages()
    from forewarned.runtime.hosts import poller
    from forewarned.runtime.listeners.sockets import StartError

    try:
        server = Address.parse(feed)
    except ValueError as error:
        raise UsageError(f"--feed {feed}: {error}", code="bad_address") from error
    settings = load_settings(None, {"mode": "service", "control": "127.0.0.1:0", **flags}).settings
    try:
        poller.run(settings, feed=server, certificate=bundle)
    except StartError as error:
        raise RefusedError(str(error), code="cannot_start") from error
