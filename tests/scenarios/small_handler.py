"""A small handler in this process, with flaws that a test can switch on."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2

from forewarned.testing._handlers import AsyncFunction

EVERY = 0.02
HEADERS = {"Metadata": "true"}
Approve = Callable[[httpx2.AsyncClient, str, dict[str, Any]], Any]


def small_handler(
    *,
    times: int = 1,
    headers: dict[str, str] | None = None,
    wants: Callable[[dict[str, Any]], bool] = lambda event: event["EventStatus"] == "Scheduled",
    before: Callable[[], None] = lambda: None,
) -> AsyncFunction:
    """Approves `times` times the events that it `wants`, and does something `before` that."""

    async def run(endpoint: str) -> None:
        url = f"{endpoint}/metadata/scheduledevents?api-version=2020-07-01"
        done: set[str] = set()
        async with httpx2.AsyncClient(headers=HEADERS if headers is None else headers) as client:
            while True:
                try:
                    document = (await client.get(url)).raise_for_status().json()
                    for event in document["Events"]:
                        if event["EventId"] in done or not wants(event):
                            continue
                        before()
                        body = {"StartRequests": [{"EventId": event["EventId"]}]}
                        for _ in range(times):
                            (await client.post(url, json=body)).raise_for_status()
                        done.add(event["EventId"])
                except (httpx2.HTTPError, ValueError):
                    pass
                await asyncio.sleep(EVERY)

    return run
