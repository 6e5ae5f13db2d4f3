"""Whether the server at an HTTPS address is the one that is meant, and what to do where it is not.

Invariant: no certificate goes unchecked, and no flag says otherwise.
"""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from forewarned.cli.failures import CommandError, UnreachableError, UsageError

_GET_IT: Final = "'forewarned ca' on the server's machine prints the certificate to trust."
_NAME_IT: Final = "Save it in a file, and name the file with --ca or FOREWARNED_CA."
_OTHER_NAMES: Final = (
    "Use a name or an address that it covers. If the server made the certificate, you can also add"
    " this name to its setting 'hosts', and restart it."
)
# By OpenSSL's numbers: its words change from version to version.
_ADVICE: Final = {
    9: "It is not valid yet: check the clocks of this machine and of the server.",
    10: "If it is your own certificate, replace it and its key: the server loads them without a"
    " restart. If the server made it, the server's log says why it was not renewed. Check this"
    " machine's clock, too.",
    62: _OTHER_NAMES,
    64: _OTHER_NAMES,
}


def trust(address: str, ca: Path | None) -> ssl.SSLContext | bool:
    """What to check certificates by, as httpx2 takes it. Raises UsageError."""
    if not address.startswith("https:"):
        # Plain HTTP needs no certificates, and loading them would take longer than most commands.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca)
    except ssl.SSLError as error:
        raise _unusable(ca, "contains no PEM certificate") from error
    except OSError as error:
        raise _unusable(ca, f"can't be read ({error.strerror})") from error


def tls_failure(error: BaseException, address: str, ca: Path | None) -> CommandError | None:
    """What went wrong with TLS, if that is what went wrong."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _untrusted(cause, address, ca)
        if isinstance(cause, ssl.SSLError):
            return UnreachableError(
                f"the program at {address} does not speak HTTPS ({cause.reason or cause})",
                "If it serves plain HTTP, write http:// in --control or FOREWARNED_CONTROL.",
                code="no_tls",
            )
    return None


def _untrusted(error: ssl.SSLCertVerificationError, address: str, ca: Path | None) -> CommandError:
    if error.verify_code in _ADVICE:
        advice = [_ADVICE[error.verify_code]]
    elif ca is None:
        advice = [_GET_IT, _NAME_IT]
    else:
        advice = [f"{ca} did not sign this server's certificate.", _GET_IT, _NAME_IT]
    return UnreachableError(
        f"the certificate of {address} can't be trusted: {error.verify_message}",
        *advice,
        code="untrusted_certificate",
        field="ca",
    )


def _unusable(ca: Path, why: str) -> CommandError:
    return UsageError(
        f"the certificate file {ca} {why}", _GET_IT, _NAME_IT, code="bad_ca", field="ca"
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The libraries between here and the socket wrap what it raised."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
