"""Hosts: the machines that VMs run on."""

from urllib.parse import quote

import click

from forewarned.cli.session import Session, with_session
from forewarned.cli.wording import count
from forewarned.control.v1 import wire


@click.group()
def host() -> None:
    """Prepare the machines that VMs run on."""


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
    help="Also for VMs of other hosts, which are then known here as soon as they are moved.",
)
@with_session
def rules(session: Session, *, name: str, metadata: str | None, every_vm: bool) -> None:
    """Print nftables rules for HOST, to be loaded there with 'nft -f -'.

    They mark what comes from the port of each VM with the VM's port mark, and keep VMs from using
    the addresses of others. A VM needs an 'interface' in the fleet, and a 'port_mark' if the
    server's setting identity is port-marks.
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
