"""What can go wrong with a command, and the exit code that says so.

The codes are a promise to scripts: docs/cli.md lists them, and a test compares.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    REFUSED = 1
    USAGE = 2
    """click's own: what was typed can't be understood."""
    UNREACHABLE = 3
    SERVER_FAILED = 4
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.REFUSED: "refused: the message says why",
    ExitCode.USAGE: "wrong usage, or wrong settings",
    ExitCode.UNREACHABLE: "no server answers, or it can't be trusted",
    ExitCode.SERVER_FAILED: "the server failed",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C; but commands that run until they are stopped,"
    " such as `serve`, exit with 0",
}

EPILOG = "Exit codes: 0 done, 1 refused, 2 wrong usage, 3 no server, 4 the server failed."


GET_ADMITTED = (
    "'forewarned token create NAME --role ROLE' on the server's machine prints a token:"
    " put it into FOREWARNED_TOKEN, or into a file for --token-file."
)

# What to do after an error of the API, where its message does not name the CLI's commands.
ADVICE = {
    "already_started": "'forewarned explain EVENT' says what it is waiting for.",
    "bad_step": "Time only moves forward: 'forewarned clock' shows the time.",
    "closed_event": "'forewarned events' lists the open events.",
    "not_spot": "'forewarned fleet show' shows the priority of each VM.",
    "notice_too_short": "On an emulator, --short-notice allows it.",
    "role_too_low": "'forewarned token create NAME --role ROLE' on the server's machine prints a"
    " token with that role: put it into FOREWARNED_TOKEN, or into a file for --token-file.",
    "store_unavailable": "The server's log says more.",
    "token_expired": GET_ADMITTED,
    "token_invalid": GET_ADMITTED,
    "token_missing": GET_ADMITTED,
    "too_many_user_events": "'forewarned events' lists them: approve one, or cancel one.",
    "too_many_faults": "'forewarned faults clear' removes them.",
    "unknown_fault": "'forewarned faults list' lists the faults.",
    "unknown_event": "'forewarned events' lists the open events, 'forewarned events --all' all.",
}


class CommandError(Exception):
    """A command that came to nothing. The message says what went wrong, the advice what next."""

    exit_code = ExitCode.REFUSED

    def __init__(
        self,
        message: str,
        *advice: str,
        code: str,
        field: str | None = None,
        details: str = "",
        body: bytes = b"",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.field = field
        self.advice = list(advice)
        self.details = details
        """The message in JSON, where the advice is not shown; empty for the same message."""
        self.body = body
        """The API's own error, where there was one."""


class RefusedError(CommandError):
    """The request was understood and turned down. Nothing has changed."""


class UsageError(CommandError):
    exit_code = ExitCode.USAGE


class UnreachableError(CommandError):
    exit_code = ExitCode.UNREACHABLE


class ServerFailedError(CommandError):
    exit_code = ExitCode.SERVER_FAILED
