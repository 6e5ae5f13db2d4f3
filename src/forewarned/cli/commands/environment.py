"""What az and the Azure SDKs need in their environment to use the running server."""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import click
import msgspec

from forewarned.cli.failures import RefusedError
from forewarned.cli.session import Session, printed_as_json, with_session
from forewarned.control.v1 import wire

_CLOUD: Final = "forewarned"
_AZ_FOLDER: Final = "az"


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What a client needs in its environment, and the commands to run first."""

    variables: dict[str, str]
    commands: tuple[str, ...] = ()


def _for_az(at: wire.Endpoints, arm: str) -> Environment:
    cloud = f"az cloud register --name {_CLOUD} --endpoint-resource-manager {shlex.quote(arm)}"
    # az can't register a cloud twice, and a server may come back at another port.
    update = f"az cloud update --name {_CLOUD} --endpoint-resource-manager {shlex.quote(arm)}"
    return Environment(
        variables={
            # Beside the store: ~/.azure is left alone.
            "AZURE_CONFIG_DIR": str(Path(at.data) / _AZ_FOLDER),
            # Or each command would leave a process behind that calls home.
            "AZURE_CORE_COLLECT_TELEMETRY": "no",
            # Signing in as a service principal would ask login.microsoftonline.com who we are.
            "AZURE_CORE_INSTANCE_DISCOVERY": "false",
            **_python_variables(at),
        },
        commands=(
            f"{cloud} --output none 2>/dev/null || {update} --output none",
            f"az cloud set --name {_CLOUD} --only-show-errors --output none",
            "az login --identity --output none",
        ),
    )


def _for_python(at: wire.Endpoints, arm: str) -> Environment:
    return Environment(variables={**_python_variables(at), "FOREWARNED_ARM_URL": arm})


def _for_node(at: wire.Endpoints, arm: str) -> Environment:
    return Environment(
        variables={
            **_trust("NODE_EXTRA_CA_CERTS", at),
            "AZURE_POD_IDENTITY_AUTHORITY_HOST": at.metadata,
            "FOREWARNED_ARM_URL": arm,
        }
    )


def _python_variables(at: wire.Endpoints) -> Mapping[str, str]:
    return {
        **_trust("REQUESTS_CA_BUNDLE", at),
        # Where a VM's token comes from, instead of 169.254.169.254.
        "AZURE_POD_IDENTITY_AUTHORITY_HOST": at.metadata,
    }


def _trust(variable: str, at: wire.Endpoints) -> Mapping[str, str]:
    """Empty if the server has a certificate of its operator's."""
    return {} if at.ca is None else {variable: at.ca}


_CLIENTS: Final[Mapping[str, Callable[[wire.Endpoints, str], Environment]]] = {
    "az": _for_az,
    "python": _for_python,
    "node": _for_node,
}


@click.command()
@click.argument("client", type=click.Choice(list(_CLIENTS)))
@with_session
def env(session: Session, client: str) -> None:
    """Print the environment that az or an Azure SDK needs.

    For a shell: eval "$(forewarned env az)". This sets variables and, for az, registers the server
    as a cloud and signs in, all in a configuration directory beside the server's store.
    """
    at = session.control.get("/v1/endpoints").read(wire.Endpoints)
    if at.arm is None:
        raise RefusedError(
            "the server has no listener for az and the Azure SDKs",
            "Its setting 'arm' is off: give it an address, like 127.0.0.1:8171, and restart it.",
            code="no_arm",
        )
    found = _CLIENTS[client](at, at.arm)
    if printed_as_json(found):
        return
    for name, value in found.variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    for command in found.commands:
        click.echo(command)
