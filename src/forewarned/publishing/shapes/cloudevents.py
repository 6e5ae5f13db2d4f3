"""CloudEvents 1.0 over HTTP, in structured and in binary mode.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md
"""

import json
from typing import Final
from urllib.parse import quote

from forewarned.service.subscriptions.content import content, instant
from forewarned.service.subscriptions.model import Message

TYPE: Final = "io.forewarned.event."
"""What types begin with; the status follows, in lower case."""
# What the binding leaves as it is in a header: printable ASCII but the quote and the percent sign.
_UNQUOTED: Final = "!#$&'()*+,-./:;<=>?@[\\]^_`{|}~"


def structured(message: Message) -> tuple[dict[str, str], bytes]:
    """Headers and body: everything is in the body."""
    event = {**_attributes(message), "data": content(message)}
    return {"Content-Type": "application/cloudevents+json; charset=utf-8"}, _json(event)


def binary(message: Message) -> tuple[dict[str, str], bytes]:
    """Headers and body: the attributes are headers, and the body is the data alone."""
    attributes = _attributes(message)
    headers = {"Content-Type": attributes.pop("datacontenttype")}
    for name, value in attributes.items():
        headers[f"ce-{name}"] = quote(value, safe=_UNQUOTED)
    return headers, _json(content(message))


def _attributes(message: Message) -> dict[str, str]:
    return {
        "specversion": "1.0",
        "id": message.id,
        "source": f"/scopes/{quote(message.scope_id, safe='/')}",
        "type": TYPE + message.status.value.lower(),
        "subject": message.event.id,
        "time": instant(message.at),
        # The extension `sequence`: compared as texts, they order the messages of one source.
        "sequence": f"{message.number:020}",
        "datacontenttype": "application/json",
    }


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
