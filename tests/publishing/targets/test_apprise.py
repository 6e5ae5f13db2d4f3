"""The Apprise target: real notifications to a receiver on loopback, by Apprise's own `json://`."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from forewarned.core.model import Event
from forewarned.publishing.shapes import short_text
from forewarned.publishing.targets.apprise import AppriseTarget
from forewarned.publishing.targets.kinds import make_target
from forewarned.publishing.targets.webhook import WebhookTarget
from forewarned.service.subscriptions.model import PublishedStatus
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.targets import Apprise
from forewarned.targets.addresses import Reach
from forewarned.targets.programs import last_line, run_program
from tests.builders import an_event
from tests.publishing.receiver import NEVER, Reply, receiving
from tests.service.subscriptions.messages import a_message, a_subscription

EVENT = an_event(
    resources=["web_0", "web_1"],
    description="Neustart\nwegen Wartung",
    duration=timedelta(seconds=9),
)
WORKFLOW = f"workflows://127.0.0.1:9/{'a' * 32}/{'b' * 43}"


async def deliver(
    url: str = "",
    *,
    url_file: str = "",
    shape: Shape = Shape(),  # noqa: B008  # frozen
    reach: Reach = Reach.LOOPBACK,
    event: Event = EVENT,
    patience: timedelta = timedelta(seconds=60),
) -> Outcome:
    service = Apprise(url=url, url_file=url_file)
    subscription = a_subscription(target=service, shape=shape)
    target = AppriseTarget(subscription, service, reach=reach, patience=patience)
    message = a_message(PublishedStatus.SCHEDULED, event=event, cause="planned")
    return await target.deliver(message, subscription)


async def test_people_get_a_title_and_a_few_lines() -> None:
    async with receiving() as receiver:
        outcome = await deliver(f"json://user:hidden@127.0.0.1:{receiver.port}/room")

    assert outcome == Delivered()
    (received,) = receiver.received
    assert received.path.startswith("/room")
    assert received.json["title"] == "Reboot scheduled: web_0, web_1"
    assert received.json["message"].splitlines() == [
        "Neustart wegen Wartung",
        "Not before 2026-01-05 12:00:00 UTC.",
        "Expected to take 9s.",
        "Cause: planned.",
        "Scheduled by operator, at 2026-01-05 12:00:00 UTC.",
        "Event 0000000A-0000-4000-8000-000000000000",
    ]


@pytest.mark.parametrize(
    ("by", "cause", "told"),
    [
        ("time", "not_before", "Started at 2026-01-05 12:00:00 UTC, at its NotBefore."),
        ("vm:web", "approved", "Started by vm:web, at 2026-01-05 12:00:00 UTC, approved."),
    ],
)
def test_people_are_told_in_words_why_an_event_started(by: str, cause: str, told: str) -> None:
    message = a_message(PublishedStatus.STARTED, cause=cause)._replace(actor=by)

    assert short_text.body(message).splitlines()[-2] == told


async def test_a_template_takes_the_place_of_the_lines_and_a_file_that_of_the_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S16: and a proxy that the environment names is not used."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    shape = Shape(name=ShapeName.TEMPLATE, template="{{ vms | length }} VMs: {{ status }}")
    async with receiving() as receiver:
        (tmp_path / "url").write_text(f"json://127.0.0.1:{receiver.port}\n")
        outcome = await deliver(url_file=str(tmp_path / "url"), shape=shape)

    assert outcome == Delivered()
    assert receiver.received[0].json["message"] == "2 VMs: Scheduled"


async def test_a_failure_is_told_without_any_part_of_the_url() -> None:
    async with receiving(lambda _: Reply(status=500, body=b"hidden-token")) as receiver:
        outcome = await deliver(f"json://user:hidden-token@127.0.0.1:{receiver.port}/hidden-room")

    assert isinstance(outcome, Later)
    assert outcome.reason.startswith("json://…: Failed to send JSON")
    assert "hidden" not in outcome.reason


async def test_where_it_may_go_is_limited_for_apprise_too() -> None:
    """S1, in the other direction: whatever the plugin, and however the address is written."""
    async with receiving() as receiver:
        outcome = await deliver(f"json://localhost:{receiver.port}", reach=Reach.PUBLIC)

    assert isinstance(outcome, Later)
    assert outcome.reason.startswith("json://…: not allowed as a target: ")
    assert "is an address of this machine; set publishing" in outcome.reason
    assert receiver.received == []


@pytest.mark.parametrize("content", ["a secret", '{"type": "message", "attachments": [{}]}', None])
@pytest.mark.parametrize(
    "rest", ["?template={}", "?a=1;template={}", "#?template={}", "?%20Template={}"]
)
async def test_a_url_can_t_name_a_file_of_the_server_or_find_out_whether_it_is_there(
    tmp_path: Path, rest: str, content: str | None
) -> None:
    """Some of Apprise's plugins would send it. They unquote what they are given once more."""
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    names = str(file), quote(quote(str(file), safe=""), safe="")

    outcomes = [await deliver(f"{WORKFLOW}/{rest.format(name)}") for name in names]

    why = "its URL names a file on this machine, which is not allowed: omit the file"
    assert outcomes == [Later(reason=f"workflows://…: {why}")] * 2


@pytest.mark.parametrize("option", ["pgppub", "pgpprv"])
async def test_the_keys_of_mails_can_t_be_files_of_the_server(option: str) -> None:
    outcome = await deliver(f"mailto://me:hidden@127.0.0.1:9/?{option}=/etc/hostname")

    assert isinstance(outcome, Later)
    assert outcome.reason.endswith(
        "names a file on this machine, which is not allowed: omit the file"
    )


@pytest.mark.parametrize(
    "rest",
    [
        "?verify=no",
        "?Verify=False",
        "?verify=0",
        "?verify=",
        "?a=1;verify=no",
        "?%20verify=no",
        "?verify=yes&verify=no",
        "#?verify=no",
    ],
)
async def test_a_url_can_t_turn_off_the_check_of_certificates(rest: str) -> None:
    """S1: what is sent would be sent to anyone. However Apprise can be told to."""
    outcome = await deliver(f"jsons://127.0.0.1:9/{rest}")

    assert outcome == Later(
        reason="jsons://…: its URL turns off certificate checks, which is not allowed: omit verify"
    )


@pytest.mark.parametrize("between", [" ", ",", ";", " , "])
async def test_a_url_is_of_one_service(between: str) -> None:
    """Apprise would notify several, each with options of its own."""
    async with receiving() as receiver:
        url = f"json://127.0.0.1:{receiver.port}/"
        outcome = await deliver(f"{url}{between}{url}?verify=no")

    assert outcome == Later(
        reason="json://…: it has several URLs: add a subscription for each of them"
    )
    assert receiver.received == []


async def test_a_file_without_a_directory_is_not_opened(tmp_path: Path) -> None:
    """Such a name may be the id of a template, so it is not refused before."""
    (tmp_path / "file").write_text("a secret")
    order = {"mode": "notify", "reach": Reach.LOOPBACK, "title": "title", "body": "body"}
    argv = [sys.executable, "-I", "-m", "forewarned.targets.apprise_process"]
    stdin = json.dumps({**order, "url": f"{WORKFLOW}/?template=file"}).encode()

    ended = await run_program(argv, stdin=stdin, directory=str(tmp_path))

    assert ended.exit_code == 1
    assert last_line(ended.stdout).endswith("could not be read.")


async def test_this_machine_s_own_log_is_no_place_to_send_to() -> None:
    outcome = await deliver("syslog://")

    assert outcome == Later(reason="syslog://…: not allowed as a target: it is on this machine")


async def test_one_that_never_answers_is_ended_at_the_limit() -> None:
    async with receiving(lambda _: NEVER) as receiver:
        outcome = await deliver(
            f"json://127.0.0.1:{receiver.port}?rto=60", patience=timedelta(seconds=3)
        )

    assert outcome == Later(reason="json://… did not accept the message within 3s")


@pytest.mark.parametrize(
    ("url", "scheme"), [("nosuch://hidden", "nosuch://…"), ("slack://hidden", "slack://…")]
)
async def test_a_url_that_apprise_can_t_use_is_told_so(url: str, scheme: str) -> None:
    outcome = await deliver(url)

    assert isinstance(outcome, Later)
    assert outcome.reason == (
        f"{scheme}: Apprise can't use this URL: see its list of services for what it must look like"
    )


async def test_without_apprise_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)

    assert await deliver("json://127.0.0.1:9") == Later(
        reason="Apprise is not installed: install it with `pip install 'forewarned[notify]'`"
    )


def test_a_subscription_gets_the_target_that_it_asks_for() -> None:
    hook = make_target(a_subscription(), reach=Reach.PUBLIC)
    chat = make_target(a_subscription(target=Apprise(url="slack://x")), reach=Reach.PUBLIC)

    assert isinstance(hook, WebhookTarget)
    assert isinstance(chat, AppriseTarget)
