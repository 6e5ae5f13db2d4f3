"""Replaces ids and names in what an endpoint says, each always by the same stand-in. Pure.

Stand-ins are made with a key that never leaves the machine that records. With the key in the
recording, anyone could try likely names; without a key, a recorder that was restarted could not
give a name the same stand-in again.

Replaced are GUIDs (ids of subscriptions, events and VMs), names in `Resources` and in paths of
Azure's resources, and every other mention of a name that was seen there. This program can't know
what a field means that it has never seen, so it searches the field's texts for all of these.
"""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Final

_GUID: Final = re.compile(
    r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F])"
)
_PATH: Final = re.compile(
    r"(?P<kind>(?:resourceGroups|/providers/[\w.]+/\w+|virtualMachines|virtualMachineScaleSets"
    r"|availabilitySets)/)(?P<name>[^/\"'\\\s?&#,;]+)",
    re.IGNORECASE,
)
# Of a body that is cut off, so that it can't be read as JSON.
_RESOURCES: Final = re.compile(r'"Resources"\s*:\s*\[?(?P<names>[^\]]*)', re.IGNORECASE)
_STRING: Final = re.compile(r'"(?P<name>[^"\\]+)(?:"|$)')
_CUT_WORD: Final = re.compile(r"[\w.-]+\Z")
_WORD_EDGE: Final = r"[A-Za-z0-9_-]"
_KEPT: Final = frozenset(
    field.casefold()
    for field in ("EventType", "EventStatus", "EventSource", "ResourceType", "NotBefore", "EventId")
)
"""Fields that hold no names, though a VM may be called the same as what they hold."""
_MOST_NAMES: Final = 10_000


class Anonymity:
    """Remembers the names it has replaced, to find them in other texts."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._names: dict[str, str] = {}
        self._mentions: re.Pattern[str] | None = None

    def name(self, name: str) -> str:
        """Names are the same in any letter case, as they are to Azure."""
        folded = name.casefold()
        found = self._names.get(folded)
        if found is None:
            found = f"vm-{self._digest('name', folded).hex()[:8]}"
            if len(self._names) < _MOST_NAMES:
                self._names[folded] = found
                self._mentions = None
        return found

    def body(self, body: bytes) -> bytes:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            # Nothing in it can be found, so nothing of it is kept.
            return b""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self._loose(text).encode()
        self._learn(value)
        anonymous = self._value(value)
        return json.dumps(anonymous, separators=(",", ":"), ensure_ascii=False).encode()

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: self.text(value) for name, value in headers.items()}

    def text(self, text: str) -> str:
        replaced = _PATH.sub(lambda found: found["kind"] + self._segment(found["name"]), text)
        replaced = _GUID.sub(lambda found: self._guid(found[0]), replaced)
        mentions = self._pattern()
        if mentions is None:
            return replaced
        return mentions.sub(lambda found: self.name(found[0]), replaced)

    def _loose(self, text: str) -> str:
        """Of what is not JSON, perhaps because it was cut off."""
        for found in _RESOURCES.finditer(text):
            for string in _STRING.finditer(found["names"]):
                self.name(string["name"])
        # A name or an id of which only the first part is there could not be recognised.
        return self.text(_CUT_WORD.sub("", text))

    def _learn(self, value: object) -> None:
        """All names first: a text may mention one that only comes after it."""
        if isinstance(value, dict):
            for key, part in value.items():
                if key.casefold() == "resources":
                    for name in part if isinstance(part, list) else [part]:
                        if isinstance(name, str):
                            self.name(name)
                self._learn(part)
        elif isinstance(value, list):
            for part in value:
                self._learn(part)

    def _value(self, value: object, field: str = "") -> object:
        if isinstance(value, dict):
            return {key: self._value(part, key.casefold()) for key, part in value.items()}
        if isinstance(value, list):
            return [self._value(part, field) for part in value]
        if not isinstance(value, str):
            return value
        if field in _KEPT:
            return _GUID.sub(lambda found: self._guid(found[0]), value)
        return self.name(value) if field == "resources" else self.text(value)

    def _segment(self, name: str) -> str:
        return name if _GUID.fullmatch(name) or name in self._names.values() else self.name(name)

    def _pattern(self) -> re.Pattern[str] | None:
        if self._mentions is None and self._names:
            longest_first = sorted(self._names, key=len, reverse=True)
            names = "|".join(re.escape(name) for name in longest_first)
            self._mentions = re.compile(
                f"(?<!{_WORD_EDGE})(?:{names})(?!{_WORD_EDGE})", re.IGNORECASE
            )
        return self._mentions

    def _guid(self, guid: str) -> str:
        digits = self._digest("guid", guid.casefold()).hex()[:32]
        made = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return made.upper() if guid != guid.lower() else made

    def _digest(self, kind: str, value: str) -> bytes:
        return hmac.digest(self._key, f"{kind}:{value}".encode(), hashlib.sha256)


def written_key(key: bytes) -> bytes:
    return base64.b64encode(key) + b"\n"


def read_key(content: bytes) -> bytes:
    """Raises ValueError."""
    key = base64.b64decode(content.strip(), validate=True)
    if len(key) != 32:
        raise ValueError("not a key of 32 bytes")
    return key
