"""`forewarned subscription`."""

import contextlib
import json
from pathlib import Path

import pytest

from forewarned.core.model import Actor
from forewarned.service.subscriptions.model import DeliveryState
from forewarned.service.subscriptions.subscriptions import Declared
from forewarned.service.subscriptions.targets import Webhook
from tests.builders import HOUR
from tests.cli.served import Served
from tests.service.subscriptions.deliveries import queue_message

URL = "https://ops.example.com/events"
SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="


def add(served: Served, *more: str, name: str = "ops", url: str = URL) -> str:
    done = served.run("subscription", "add", name, url, *more)
    assert done.exit_code == 0, done.output
    return done.stdout


def give_up(served: Served, error: str = "answered 410: gone") -> int:
    work = queue_message(
        served.steered.services.engine, "ops", state=DeliveryState.UNDELIVERED, error=error
    )
    return served.start(work).result()


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_one_line_adds_a_webhook_and_prints_its_secret_and_what_to_do_with_it(
    served: Served,
) -> None:
    printed = add(served).splitlines()

    assert printed[0] == "added ops: all messages, as cloudevents, to https://ops.example.com"
    assert printed[2].startswith("whsec_")
    assert "Give this secret to the receiver. It won't be shown again." in printed
    assert any("docs/publishing.md" in line for line in printed)
    assert "To try it:  forewarned subscription test ops" in printed


def test_events_are_chosen_by_options_that_may_be_repeated(served: Served) -> None:
    printed = add(
        served,
        *("--type", "reboot", "--type", "FREEZE", "--status", "started", "--source", "user"),
        *("--scope", "vmss/*", "--vm", "web-*", "--vm", "db"),
    )

    shown = json.loads(served.run("subscription", "show", "ops", "--json").stdout)
    assert shown["filter"] == {
        "types": ["Freeze", "Reboot"],
        "statuses": ["Started"],
        "sources": ["User"],
        "scopes": ["vmss/*"],
        "vms": ["web-*", "db"],
    }
    assert " ".join(printed.split()).startswith(
        "added ops: types Freeze, Reboot; statuses Started; sources User; scopes vmss/*; VMs web-*,"
    )


def test_another_scheme_is_a_url_of_apprise_and_not_shown(served: Served) -> None:
    printed = add(served, url="json://token@chat.example.com/")

    assert "token" not in printed
    assert "to json://…" in printed
    assert "whsec_" not in printed


def test_a_url_that_is_a_secret_comes_from_a_file_or_from_standard_input(
    served: Served, tmp_path: Path
) -> None:
    """S14: other users of the machine see command lines, and shells keep them."""
    secret = "json://token@chat.example.com/"
    (tmp_path / "url").write_text(f"{secret}\n")
    file = ("--url-file", str(tmp_path / "url"))

    added = served.run("subscription", "add", "oncall", *file)
    piped = served.run("subscription", "add", "piped", "--url-file", "-", stdin=f"{secret}\n")
    changed = served.run("subscription", "change", "piped", *file)

    assert [done.exit_code for done in (added, piped, changed)] == [0, 0, 0]
    assert "to json://…" in added.stdout
    assert "token" not in added.stdout + piped.stdout + changed.stdout


@pytest.mark.parametrize(
    ("words", "content", "why"),
    [
        (["add", "x"], "", "name a URL, or a file that contains it with --url-file"),
        (["add", "x", URL, "--url-file", "url"], URL, "name a URL or --url-file, not both"),
        (["change", "ops", "--url", URL, "--url-file", "url"], URL, "not both"),
        (["add", "x", "--url-file", "url"], "\n", "url contains no URL"),
        (
            ["add", "x", "--url-file", "url"],
            f"{URL}\n{URL}",
            "has 2 lines, but must contain one URL",
        ),
        (["add", "x", "--url-file", "gone"], "", "can't read gone: No such file or directory"),
    ],
)
def test_what_is_no_single_url_is_refused_and_changes_nothing(
    served: Served, tmp_path: Path, words: list[str], content: str, why: str
) -> None:
    (tmp_path / "url").write_text(content)
    add(served)

    with contextlib.chdir(tmp_path):
        refused = served.run("subscription", *words)

    found = json.loads(served.run("subscription", "list", "--json").stdout)["subscriptions"]
    assert (refused.exit_code, why in " ".join(refused.stderr.split())) == (2, True), refused.stderr
    assert [(each["name"], each["target"]["place"]) for each in found] == [
        ("ops", "https://ops.example.com")
    ]


def test_standard_input_that_is_not_text_is_refused_as_a_file_is(served: Served) -> None:
    refused = served.run("subscription", "add", "x", "--url-file", "-", stdin=b"https://\xff/\n")

    assert refused.exit_code == 2
    assert "can't read standard input: it is not text" in refused.stderr


def test_secrets_certificates_and_templates_come_from_files_here(
    served: Served, tmp_path: Path
) -> None:
    (tmp_path / "secrets").write_text(f"{SECRET}\n")
    (tmp_path / "text").write_text("{{ status }} {{ vms | join(', ') }}")

    printed = add(
        served,
        *("--secret-file", str(tmp_path / "secrets"), "--template", str(tmp_path / "text")),
        *("--content-type", "text/markdown"),
    )
    shown = json.loads(served.run("subscription", "show", "ops", "--json").stdout)
    unread = served.run("subscription", "add", "x", URL, "--ca-file", str(tmp_path / "gone"))

    assert SECRET not in printed
    assert shown["shape"]["kind"] == "template"
    assert shown["shape"]["content_type"] == "text/markdown"
    assert (unread.exit_code, "No such file" in unread.stderr) == (2, True)


def test_secrets_are_for_web_services(served: Served, tmp_path: Path) -> None:
    refused = served.run(
        *("subscription", "add", "x", "json://h", "--secret-file", str(tmp_path / "secrets"))
    )

    assert refused.exit_code == 2
    assert "for web services" in refused.stderr


def test_what_is_named_is_changed_and_the_rest_stays(served: Served) -> None:
    add(served, "--type", "reboot", "--shape", "event-grid")

    moved = served.run("subscription", "change", "ops", "--url", "https://new.example.com/")
    narrowed = served.run("subscription", "change", "ops", "--vm", "web-*")
    widened = served.run("subscription", "change", "ops", "--all")

    assert (
        lines(moved.stdout)[0]
        == "changed ops: types Reboot, as event-grid, to https://new.example.com"
    )
    assert "whsec_" not in moved.stdout
    assert lines(narrowed.stdout)[0].startswith("changed ops: VMs web-*, as event-grid")
    assert lines(widened.stdout)[0].startswith("changed ops: all messages, as event-grid")


@pytest.mark.parametrize(
    "words", [(), ("--all", "--vm", "a"), ("--ca-file", "x")], ids=["nothing", "both", "no url"]
)
def test_a_change_that_says_nothing_or_too_much_is_refused(
    served: Served, words: tuple[str, ...]
) -> None:
    add(served)

    assert served.run("subscription", "change", "ops", *words).exit_code == 2


def test_subscriptions_are_listed_with_their_health(served: Served) -> None:
    before = served.run("subscription", "list")
    add(served)
    give_up(served)

    listed = served.run("subscription", "list")

    assert "no subscriptions" in before.stdout
    assert lines(listed.stdout) == [
        "Name Health Target Delivered Pending Undelivered",
        "ops failing https://ops.example.com 0 0 1",
    ]


def test_one_whose_secrets_are_in_a_file_of_the_server_says_in_which(served: Served) -> None:
    target = Webhook(url=URL, secret_file="/etc/forewarned/ops.secret")
    subscriptions = served.steered.services.use_cases.subscriptions
    declared = Declared(name="ops", target=target)
    served.start(subscriptions.keep([declared], by=Actor(name="settings"))).result()

    shown = " ".join(served.run("subscription", "show", "ops").stdout.split())

    assert "signed with the secrets in /etc/forewarned/ops.secret" in shown


def test_one_is_shown_with_what_was_given_up_and_why(served: Served) -> None:
    add(served)
    number = give_up(served)

    shown = lines(served.run("subscription", "show", "ops").stdout)
    listed = lines(served.run("subscription", "deliveries", "ops", "--state", "undelivered").stdout)
    pending = served.run("subscription", "deliveries", "ops", "--state", "pending").stdout

    assert "Target webhook at https://ops.example.com, signed with 1 secret" in shown
    assert "Failed 3 attempts, last 0s ago: answered 410: gone" in shown
    assert "To try them again: forewarned subscription redeliver ops" in shown
    row = f"{number} Reboot Started web 3 given up, 0s ago answered 410: gone"
    assert row in shown
    assert listed == ["Number Message VMs Tries State Error", row]
    assert pending == "no pending messages\n"


def test_one_that_rests_says_when_the_next_attempt_is(served: Served) -> None:
    add(served)
    engine = served.steered.services.engine
    served.start(queue_message(engine, "ops", error="answered 429", rests_for=HOUR)).result()

    shown = lines(served.run("subscription", "show", "ops").stdout)
    found = json.loads(served.run("subscription", "show", "ops", "--json").stdout)

    [pending] = [line for line in shown if line.startswith("Pending")]
    assert "the next attempt is in 59m" in pending
    assert found["health"]["rests_until"] is not None


def test_what_was_given_up_is_redelivered(served: Served) -> None:
    add(served)
    number = give_up(served)
    give_up(served)

    one = served.run("subscription", "redeliver", "ops", "--number", str(number))

    assert one.stdout == "1 message to ops is due now\n"


def test_one_is_paused_and_resumed(served: Served) -> None:
    add(served)

    paused = served.run("subscription", "pause", "ops")
    resumed = served.run("subscription", "resume", "ops")

    assert paused.stdout == "ops is paused: messages are kept for a limited time\n"
    assert resumed.stdout == "ops is active, with 0 messages to deliver\n"


def test_a_test_that_fails_says_why_and_exits_with_1(served: Served) -> None:
    add(served, url="http://127.0.0.1:9/")

    failed = served.run("subscription", "test", "ops")
    as_json = served.run("subscription", "test", "ops", "--json")

    assert failed.exit_code == as_json.exit_code == 1
    assert "the test message was not delivered: " in failed.stderr
    assert json.loads(as_json.stdout)["delivered"] is False


def test_a_secret_is_rotated_and_printed(served: Served) -> None:
    first = add(served).splitlines()[2]

    printed = served.run("subscription", "rotate", "ops").stdout.splitlines()

    assert printed[0] == "messages to ops are signed with 2 secrets"
    assert printed[2].startswith("whsec_")
    assert printed[2] != first


def test_messages_that_were_not_delivered_are_not_removed_without_a_yes(served: Served) -> None:
    add(served)
    give_up(served)

    refused = served.run("subscription", "remove", "ops")
    removed = served.run("subscription", "remove", "ops", "--yes")
    again = served.run("subscription", "remove", "ops")

    assert refused.exit_code == 1
    assert "nothing was removed: 1 message to ops not delivered" in refused.stderr
    assert removed.stdout == "removed ops\n"
    assert (again.exit_code, "there is no subscription 'ops'" in again.stderr) == (1, True)


@pytest.mark.parametrize("word", ["show", "test", "pause", "resume", "redeliver", "remove"])
def test_names_are_completed(served: Served, word: str) -> None:
    add(served)

    done = served.run(
        _FOREWARNED_COMPLETE="bash_complete",
        COMP_WORDS=f"forewarned subscription {word} o",
        COMP_CWORD="3",
    )

    assert done.stdout == "plain,ops\n"
