"""Tokens and service principals, for operators and their programs.

These commands write to where a server keeps its principals: a file in its data directory, or the
database that nodes share. They need no running server. Users who can write there can admit others.
"""

import hashlib
import secrets
import uuid
from datetime import datetime
from pathlib import Path

import click

from forewarned.cli.commands.serve import folder_options
from forewarned.cli.failures import RefusedError, UsageError
from forewarned.cli.parameters import read_expiry
from forewarned.cli.session import Session, json_option, printed_as_json
from forewarned.cli.stores.principal_places import Place, place_of, store_option
from forewarned.cli.tables import principal_table
from forewarned.cli.wording import count
from forewarned.clock import wall_clock
from forewarned.security import principals
from forewarned.security.identities import TENANT_ID, Principal, Role


@click.group()
def token() -> None:
    """Create, list and revoke tokens for people and programs.

    A server in service mode requires a token from all callers except its VMs, and an emulator
    requires none. The setting 'control_access' changes that for the control listener.
    """


@token.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    required=True,
    help="What the token's owner may do. Of reader, approver, maintainer and admin, each includes"
    " those before it; actuator includes none.",
)
@click.option(
    "--service-principal",
    is_flag=True,
    help="Create a client id and a secret to sign in with, instead of a bearer token.",
)
@click.option(
    "--expires",
    type=read_expiry,
    metavar="SPAN|DATE",
    help="When it expires, in real time: after a span like 30d, or on a date like 2027-01-31, at"
    " 00:00 UTC.",
)
@store_option
@folder_options
@json_option
def create(
    *,
    name: str,
    role: str,
    service_principal: bool,
    expires: datetime | None,
    config: Path | None,
    data: str | None,
    store: str | None,
) -> None:
    """Create a token for NAME, and print it. It is shown only once.

    The server stores only its digest, and accepts it without a restart.
    """
    if not principals.NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name: use up to 64 letters, digits and . _ @ -",
            code="bad_name",
            field="name",
        )
    secret = f"fw_{secrets.token_urlsafe(32)}"
    digest = hashlib.sha256(secret.encode()).hexdigest()
    if service_principal:
        client_id = str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))
        made = Principal(
            name=name,
            role=Role(role),
            client_id=client_id,
            secret_sha256=digest,
            expires_at=expires,
        )
    else:
        made = Principal(name=name, role=Role(role), token_sha256=digest, expires_at=expires)
    with place_of(config, data, store).edited() as known:
        if any(principals.same_name(each, name) for each in known):
            raise RefusedError(
                f"{name!r} already has a token",
                f"Revoke it with 'forewarned token revoke {name}' first.",
                code="name_taken",
                field="name",
            )
        known.append(made)
    _print_secret(made, secret)


def _print_secret(made: Principal, secret: str) -> None:
    if printed_as_json(_with_secret(made, secret)):
        return
    if not made.client_id:
        # Alone on its line, so that it can be put into a variable.
        click.echo(secret)
    else:
        click.echo(f"tenant id      {TENANT_ID}")
        click.echo(f"client id      {made.client_id}")
        click.echo(f"client secret  {secret}")


def _with_secret(made: Principal, secret: str) -> dict[str, object]:
    shown: dict[str, object] = {"name": made.name, "role": made.role}
    if made.client_id:
        shown |= {
            "tenant_id": TENANT_ID,
            "client_id": made.client_id,
            "client_secret": secret,
        }
    else:
        shown["token"] = secret
    return shown if made.expires_at is None else {**shown, "expires_at": made.expires_at}


@token.command("list")
@store_option
@folder_options
@json_option
def list_(*, config: Path | None, data: str | None, store: str | None) -> None:
    """List the tokens: names, roles, and when they expire. No secret is shown."""
    place = place_of(config, data, store)
    known = place.read()
    if printed_as_json([_shown(each) for each in known]):
        return
    if known:
        Session().print([principal_table(known, now=wall_clock())])
    else:
        click.echo("there are no tokens")
        _hint_at_file(place)


@token.command()
@click.argument("name")
@store_option
@folder_options
@json_option
def revoke(*, name: str, config: Path | None, data: str | None, store: str | None) -> None:
    """Revoke NAME's token. The server refuses it from now on."""
    with place_of(config, data, store).edited() as known:
        found = [each for each in known if principals.same_name(each, name)]
        if not found:
            raise RefusedError(
                f"there is no token named {name!r}",
                "'forewarned token list' lists the tokens.",
                code="unknown_principal",
                field="name",
            )
        known.remove(found[0])
    if not printed_as_json(_shown(found[0])):
        click.echo(f"the token of {found[0].name} is revoked")


@token.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@store_option
@folder_options
@json_option
def import_(*, file: Path | None, config: Path | None, data: str | None, store: str | None) -> None:
    """Add the tokens of a principals.toml to the database that nodes share.

    Without FILE, the principals.toml in the data directory is read. Tokens that are already in the
    database stay as they are. If the database has a different token of the same name, nothing is
    changed.
    """
    place = place_of(config, data, store)
    if place.database is None:
        raise UsageError(
            "this server keeps its tokens in a file, so there is nowhere to import them to",
            "Name the database that the nodes share with --store, or in the settings file.",
            code="no_store",
        )
    given = place.read_import(file)
    with place.edited() as known:
        added = [each for each in given if each not in known]
        for each in added:
            if any(principals.same_name(other, each.name) for other in known):
                raise RefusedError(
                    f"the database has a different token for {each.name!r}; nothing was changed",
                    f"Revoke it with 'forewarned token revoke {each.name}', or remove it from the"
                    " file.",
                    code="name_taken",
                    field="name",
                )
        known.extend(added)
    if not printed_as_json([_shown(each) for each in added]):
        click.echo(f"added {len(added)} of {count(len(given), 'token')}")


def _hint_at_file(place: Place) -> None:
    if place.database is not None and place.file.exists():
        click.echo(
            f"{place.file} has tokens that the nodes don't use: 'forewarned token import' adds them"
            " to the database",
            err=True,
        )


def _shown(principal: Principal) -> dict[str, object]:
    """Without the secret, and without empty fields."""
    facts = {
        "name": principal.name,
        "role": principal.role,
        "client_id": principal.client_id,
        "expires_at": principal.expires_at,
        "is_expired": principal.is_expired(wall_clock()),
    }
    return {name: fact for name, fact in facts.items() if fact}
