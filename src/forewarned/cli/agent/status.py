"""What the agent on this VM says about itself, or a CommandError that says why it can't be read.

Never through a proxy and never after a redirect, as everything the CLI asks.
"""

import ssl
from dataclasses import dataclass
from typing import Final

import httpx2
import msgspec

from forewarned.agent.status.wire import AgentStatus, EventStatus
from forewarned.cli.connection import normal_address
from forewarned.cli.failures import RefusedError, ServerFailedError, UnreachableError, UsageError
from forewarned.cli.wording import listing, plain

PATIENCE: Final = httpx2.Timeout(5)
_MOST_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    status: AgentStatus
    body: bytes
    """As it came."""


def ask(address: str) -> Told:
    """`address` is HOST:PORT or a URL."""
    try:
        url = normal_address(address)
    except UsageError as error:
        raise UsageError(
            f"{address!r} is not an address an agent can listen on",
            "Give --agent or FOREWARNED_AGENT as HOST:PORT.",
            code="bad_address",
            field="agent",
        ) from error
    try:
        # Plain HTTP needs no certificates, and loading them takes longer than the answer.
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if url.startswith("http:") else True
        with httpx2.Client(trust_env=False, timeout=PATIENCE, verify=verify) as client:
            response = client.get(f"{url}/status")
    except httpx2.HTTPError as error:
        raise UnreachableError(
            f"no agent answers at {url} ({error})",
            "Start it with 'forewarned agent run'.",
            "If it listens elsewhere, give its address with --agent or FOREWARNED_AGENT.",
            code="unreachable",
        ) from error
    try:
        if not response.is_success:
            raise msgspec.DecodeError(f"it answered {response.status_code}")
        status = msgspec.json.decode(response.content, type=AgentStatus)
    except msgspec.MsgspecError as error:
        raise ServerFailedError(
            f"the program at {url} is not an agent: {error}", code="not_understood"
        ) from error
    return Told(status=status, body=response.content)


def find(status: AgentStatus, typed: str) -> EventStatus:
    """The event whose id begins as typed: an open one, and only if there is none, a past one.

    Nothing typed means the open event, where there is just one.
    """
    begun = [each for each in status.events if each.event_id.upper().startswith(typed.upper())]
    still_open = [each for each in begun if each.stage != "finished"]
    found = still_open or (begun if typed else [])
    if len(found) == 1:
        return found[0]
    if found:
        begin = f"the ids of {len(found)} events begin with {typed!r}"
        what = begin if typed else "several events are open"
        raise RefusedError(
            f"{what}: say which",
            *[f"  {_line(each)}" for each in found[:_MOST_SHOWN]],
            code="ambiguous_event",
            field="event",
        )
    raise RefusedError(
        f"the agent knows no event {plain(typed)!r}" if typed else "the agent has no open event",
        "'forewarned agent status --all' lists the events it knows.",
        code="unknown_event",
        field="event",
    )


def _line(event: EventStatus) -> str:
    return f"{event.event_id}  {plain(event.type)} of {listing(event.resources)}"
