"""docs/troubleshooting.md: what a reader searches for is what the program says."""

import re
from typing import Final

from tests.docs.pages import PAGES, ROOT

PAGE: Final = PAGES["troubleshooting.md"]
# Values that the program puts into its messages.
_VALUE: Final = re.compile(
    r"…|'[^']*'|https?://\S+|\d+(?:\.\d+){3}:\d+|:80\b|\b\d+m\b|maintainer,|X-Forwarded-For\."
)
_SEEN: Final = re.compile(r"^(?:\| (?P<cell>[^|]*) \||\*\*`(?P<term>[^`]+)`\*\*$)", re.MULTILINE)
# What others say: OpenSSL, systems, Azure's own codes, and names of ours that are no messages.
_OTHERS: Final = {"CERTIFICATE_VERIFY_FAILED", "az", "http://", "Host", "/healthz", ".forewarned"}
_OTHERS_SAY: Final = re.compile(r"\((?:Address already in use|Permission denied)\)")


def messages() -> list[str]:
    found: list[str] = []
    for each in _SEEN.finditer(PAGE):
        found += [each["term"]] if each["term"] else re.findall(r"`([^`]+)`", each["cell"])
    return [text for text in found if text not in _OTHERS and not text.startswith("forewarned ")]


def said() -> str:
    """The program's own texts, with what is broken over lines put together."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    return re.sub(r'"\s*\n\s*f?"', "", source)


def test_every_message_on_the_page_is_one_that_the_program_has() -> None:
    program = said()
    unknown = [
        (message, part)
        for message in messages()
        for part in _VALUE.split(_OTHERS_SAY.sub("", message))
        if part.strip() and part.strip() not in program
    ]

    assert len(messages()) > 35
    assert unknown == []
