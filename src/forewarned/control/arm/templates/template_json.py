"""The JSON of template files, which people write by hand, as standard JSON. Pure.

`az deployment group create -f FILE` sends the file's text as it is, behind a key without quotes:
`{"properties": {"mode": "Incremental", template:{ ... }}}`. The file may have comments, and texts
that go over several lines. Azure's service takes all that, at deployments alone.

Invariant: what is standard JSON already stays as it is, byte for byte, and nothing inside of a text
is taken for a comment or a key.
"""

import re
from typing import Final

# Whatever begins also ends, if only where everything does: otherwise each of a million quotes would
# be looked at with all that follows it, again and again.
_TOKEN: Final = re.compile(
    rb"""
      (?P<text> " (?:[^"\\] | \\.)*+ "? )
    | (?P<line> // [^\r\n]*+ )
    | (?P<block> /\* (?: .*? \*/ | .*+ ) )
    | (?P<key> \b template (?= [ \t\r\n]*+ : ) )
    """,
    re.VERBOSE | re.DOTALL,
)
_INSIDE: Final = re.compile(rb"\\.|[\x00-\x1f]", re.DOTALL)


class UnendedCommentError(ValueError):
    """A comment goes on to the end of the content. The message says what to do."""


def standard_json(raw: bytes) -> bytes:
    """Raises UnendedCommentError. Anything else that is wrong is left for the decoder to find."""
    return _TOKEN.sub(_standard, raw)


def _standard(found: re.Match[bytes]) -> bytes:
    token = found[0]
    match found.lastgroup:
        case "text":
            return _INSIDE.sub(_escaped, token)
        case "key":
            return b'"template"'
        case "line" if found.end() == len(found.string):
            raise UnendedCommentError(
                "a // comment has no end of line after it: end the template's file with a new line"
            )
        case "block" if len(token) < len("/**/") or not token.endswith(b"*/"):
            raise UnendedCommentError("a /* comment is never closed")
        case _:
            return b" "


def _escaped(found: re.Match[bytes]) -> bytes:
    """A line's end inside of a text, as JSON writes it. What is escaped already is not touched."""
    return found[0] if found[0].startswith(b"\\") else b"\\u%04x" % found[0][0]
