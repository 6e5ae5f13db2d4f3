"""This VM's name and where its metadata is.

The document is left alone: reading it switches notice on.
"""

import logging

from notbefore.agent.settings import AgentSettings
from notbefore.client import AsyncScheduledEvents


async def own_name(settings: AgentSettings) -> str:
    """Raises ScheduledEventsError."""
    async with _asking(settings) as client:
        return (await client.me()).name


async def found_endpoint(settings: AgentSettings) -> str | None:
    """Where the VM's metadata is, and answers. Raises ScheduledEventsError."""
    async with _asking(settings) as client:
        await client.me()
        return client.contact().endpoint


def _asking(settings: AgentSettings) -> AsyncScheduledEvents:
    # The command tells what is wrong; the SDK's log would tell it a second time.
    logging.getLogger("notbefore").addHandler(logging.NullHandler())
    return AsyncScheduledEvents(settings.endpoint, timeout=5, first_timeout=5)
