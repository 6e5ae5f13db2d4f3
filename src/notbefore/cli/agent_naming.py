"""This VM's name, by its metadata. The document is left alone: reading it switches notice on."""

import logging

from notbefore.agent.settings import AgentSettings
from notbefore.client import AsyncScheduledEvents


async def own_name(settings: AgentSettings) -> str:
    """Raises ScheduledEventsError."""
    # The command tells what is wrong; the SDK's log would tell it a second time.
    logging.getLogger("notbefore").addHandler(logging.NullHandler())
    async with AsyncScheduledEvents(settings.endpoint, timeout=5, first_timeout=5) as client:
        return (await client.me()).name
