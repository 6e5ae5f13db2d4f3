"""Messages for people: to a webhook, and through Apprise."""

import logging
from pathlib import Path

import pytest

from forewarned.agent.hooks.kinds import KINDS
from forewarned.agent.model import Phase, Verdict
from forewarned.config.tables import TableReader
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


async def test_through_apprise_people_get_the_text() -> None:
    with answering(well) as service:
        url = service.url.replace("http://", "json://user:hidden@")
        hook = a_hook("notify", url=url, shape="apprise", text="{me} goes down", retries=0)
        outcome = await hook.run(a_call())
        problems = await hook.check()

    assert outcome.verdict is Verdict.DONE
    assert outcome.detail == "notified json://…"
    told = service.asked[0].json
    assert (told["title"], told["message"]) == ("Reboot: prepare on web_0", "web_0 goes down")
    assert problems == []
    assert len(service.asked) == 1, "a check notifies no one"
    assert "hidden" not in hook.describe(Phase.PREPARE)


async def test_a_url_that_apprise_can_t_use_is_found_by_a_check_and_not_shown() -> None:
    (problem,) = await a_hook("notify", url="slack://hidden", shape="apprise").check()

    assert "Apprise can't use this URL" in problem
    assert "hidden" not in problem


async def test_the_urls_that_slack_and_teams_show_are_good_for_apprise() -> None:
    """So a file of before only needs another shape."""
    slack = "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
    teams = (
        "https://prod-12.westeurope.logic.azure.com:443/workflows/0a1b2c3d4e5f60718293a4b5c6d7e8f9"
        "/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0"
        "&sig=abcDEFghiJKLmnoPQRstuVWXyz0123456789abcdefg"
    )

    for url in (slack, teams):
        assert await a_hook("notify", url=url, shape="apprise").check() == []


@pytest.mark.parametrize("shape", ["slack", "teams"])
def test_a_shape_of_before_is_told_what_to_write_instead(shape: str) -> None:
    reader = TableReader()

    table = reader.table({"url": "https://x/", "shape": shape}, KINDS["notify"], ("hooks", "tell"))

    assert table is None
    (mistake,) = reader.mistakes
    assert mistake.path == ("hooks", "tell", "shape")
    assert mistake.why == (
        f'{shape} is sent through Apprise now: write shape = "apprise", keep the URL, and install'
        " forewarned[notify]"
    )


async def test_a_refused_message_is_a_failure() -> None:
    with answering(lambda _: Reply(status=403, text="invalid_token")) as service:
        outcome = await a_hook("notify", url=service.url).run(a_call())

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
