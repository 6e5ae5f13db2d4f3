"""The certificate that clients have to trust where the server speaks HTTPS.

It is read from the data directory, and no server has to run: one that was started there before has
created it.
"""

from pathlib import Path
from typing import Final

import click

from forewarned.cli.commands.serve import folder_options, local_settings
from forewarned.cli.failures import RefusedError
from forewarned.cli.session import json_option, printed_as_json

# As the server names it, whose own module needs packages that are not everywhere.
FILE: Final = "arm-ca.pem"

_BEGINNING: Final = "-----BEGIN CERTIFICATE-----"


@click.command()
@click.option(
    "--path", "only_path", is_flag=True, help="Print the path of the certificate instead."
)
@folder_options
@json_option
def ca(*, only_path: bool, data: str | None, config: Path | None) -> None:
    """Print the certificate that HTTPS clients have to trust.

    az and the Azure SDKs only use HTTPS. Pass the path of the certificate to az and Python in
    REQUESTS_CA_BUNDLE, to Node in NODE_EXTRA_CA_CERTS, to curl with --cacert; 'forewarned env' does
    that for az and the SDKs. Pass it to this CLI with --ca, or in FOREWARNED_CA. The server creates
    the certificate at its first start, and keeps it.
    """
    settings = local_settings(config, data)
    if settings.tls_certificate is not None:
        raise RefusedError(
            f"the server uses your certificate, {settings.tls_certificate}, and has no authority"
            f" of its own",
            "Clients have to trust the issuer of that certificate.",
            code="no_authority",
        )
    path = settings.data.absolute() / FILE
    pem = _read(path)
    if printed_as_json({"path": str(path), "pem": pem}):
        return
    if only_path:
        click.echo(str(path))
    else:
        click.echo(pem, nl=False)


def _read(path: Path) -> str:
    try:
        pem = path.read_text(encoding="ascii")
    except FileNotFoundError:
        raise RefusedError(
            f"{path} does not exist: no server with HTTPS was ever started there",
            "Start one with 'forewarned serve', or name its directory with --data.",
            code="no_authority",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(f"{path} can't be read ({error})", code="no_authority") from error
    if not pem.startswith(_BEGINNING):
        raise RefusedError(
            f"{path} contains no certificate",
            "Restart the server, which says what to do about the file.",
            code="no_authority",
        )
    return pem
