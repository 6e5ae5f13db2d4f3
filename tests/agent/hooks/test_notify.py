"""Messages for people, as a webhook, Slack and Teams take them."""

import logging
from pathlib import Path

import pytest

from forewarned.agent.model import Verdict
from tests.agent.hooks.calls import EVENT, a_call, a_hook, a_sighting
from tests.agent.hooks.http_service import Asked, Reply, answering


def well(_: Asked) -> Reply:
    return Reply(text="ok")


async def test_a_webhook_gets_the_event_and_the_text() -> None:
    with answering(well) as service:
        outcome = await a_hook("notify", url=service.url, text="{me} goes down").run(a_call())

    assert outcome.verdict is Verdict.DONE
    told = service.asked[0].json
    assert told["EventId"] == EVENT
    assert told["Text"] == "web_0 goes down"


async def test_slack_gets_a_text_in_which_nothing_is_a_link() -> None:
    """S15."""
    sighting = a_sighting(description="<!channel> & <http://evil|click>")
    with answering(well) as service:
        await a_hook("notify", url=service.url, shape="slack", text="{description}").run(
            a_call(sighting=sighting)
        )

    assert service.asked[0].json == {"text": "&lt;!channel&gt; &amp; &lt;http://evil|click&gt;"}


async def test_teams_gets_a_card_in_which_nothing_is_a_link() -> None:
    """S15."""
    sighting = a_sighting(description="[click](http://evil)")
    with answering(well) as service:
        await a_hook("notify", url=service.url, shape="teams", text="{description}").run(
            a_call(sighting=sighting)
        )

    told = service.asked[0].json
    assert told["type"] == "message"
    (attachment,) = told["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert card["body"] == [
        {"type": "TextBlock", "text": r"\[click\]\(http://evil\)", "wrap": True}
    ]


async def test_a_refused_message_is_a_failure() -> None:
    with answering(lambda _: Reply(status=403, text="invalid_token")) as service:
        outcome = await a_hook("notify", url=service.url, shape="slack").run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail == f"{service.url} answered 403: invalid_token"


async def test_an_address_in_a_file_is_never_shown(tmp_path: Path) -> None:
    address = tmp_path / "address"
    hook = a_hook("notify", url_file=str(address))
    with answering(lambda _: Reply(status=500)) as service:
        address.write_text(f"{service.url}/services/T000/secret\n")
        refused = await hook.run(a_call())
        reached = await hook.check()
    address.write_text("secret")
    unusable = await hook.run(a_call())

    assert service.asked[0].path == "/services/T000/secret"
    assert reached == []
    for outcome in (refused, unusable):
        assert outcome.verdict is Verdict.FAILED
        assert "secret" not in outcome.detail


async def test_a_line_is_logged_with_the_facts_beside_it(caplog: pytest.LogCaptureFixture) -> None:
    """S14: and it is one line, whatever the event says."""
    sighting = a_sighting(description="a\nERROR forged")
    hook = a_hook("log", text="{type}: {description}", level="warning")

    with caplog.at_level(logging.INFO):
        outcome = await hook.run(a_call(sighting=sighting))

    assert outcome.verdict is Verdict.DONE
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "Reboot: a ERROR forged"
    assert record.__dict__["event"]["event_id"] == EVENT
    assert await hook.check() == []
