"""What the manual says to receivers: the examples are real, and its program works."""

import asyncio
import socket
import sys
from pathlib import Path

import msgspec
import pytest

from forewarned.publishing.targets.webhook import WebhookTarget
from forewarned.service.subscriptions.content import samples
from forewarned.service.subscriptions.errors import BadTemplateError
from forewarned.service.subscriptions.outcomes import Delivered, Outcome
from forewarned.service.subscriptions.tables import AppriseTable, ShapeTable, WebhookTable
from forewarned.service.subscriptions.targets import Webhook
from forewarned.service.subscriptions.template import (
    LONGEST_TEMPLATE,
    LONGEST_TEXT,
    TextTemplate,
)
from forewarned.targets.addresses import Reach
from forewarned.targets.signatures import new_secret
from tests.service.subscriptions.messages import a_subscription
from tools.agent_reference import described
from tools.publishing_reference import PAGE, ROOT, SECRET, page

MANUAL = PAGE.read_text(encoding="utf-8")


def test_the_examples_are_what_the_code_makes() -> None:
    assert page(MANUAL) == MANUAL, "run .venv/bin/python -m tools.publishing_reference"


@pytest.mark.parametrize("struct", [WebhookTable, AppriseTable, ShapeTable])
def test_every_field_has_words_of_its_own(struct: type[msgspec.Struct]) -> None:
    words = described(struct)

    assert {name for name, text in words.items() if not text.endswith(".")} == set()
    assert all(f"| `{name}` |" in MANUAL for name in words)


def test_every_limit_and_filter_of_templates_is_in_the_manual() -> None:
    section = MANUAL.partition("### Write a template")[2].partition("###")[0]
    with pytest.raises(BadTemplateError) as refused:
        TextTemplate("{{ 1 | nosuch }}")
    known = str(refused.value).partition("use one of ")[2].split(", ")

    assert len(known) > 10
    assert [name for name in known if f"`{name}`" not in section] == ["d"], "which is `default`"
    assert f"{LONGEST_TEMPLATE:,}" in section
    assert f"{LONGEST_TEXT:,}" in section


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found: int = free.getsockname()[1]
        return found


async def test_the_program_of_the_manual_prints_each_status_if_its_signature_is_right(
    tmp_path: Path, port: int
) -> None:
    text = (ROOT / "examples" / "receive.py").read_text(encoding="utf-8")
    program = tmp_path / "receive.py"
    program.write_text(text.replace("8180", str(port)))
    receiver = await asyncio.create_subprocess_exec(
        sys.executable,
        str(program),
        SECRET,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await listening(port)
        outcomes = [await deliver(port, SECRET), await deliver(port, new_secret(b"w" * 32))]
    finally:
        receiver.terminate()
        printed, _ = await receiver.communicate()

    right, wrong = outcomes
    assert right == [Delivered()] * 6
    assert {getattr(each, "reason", "") for each in wrong} == {
        f"http://127.0.0.1:{port} answered 401"
    }
    assert [line.split() for line in printed.decode().splitlines()] == [
        [message.status, message.id] for message in samples()
    ]


async def deliver(port: int, secret: str) -> list[Outcome]:
    hook = Webhook(url=f"http://127.0.0.1:{port}/", secrets=(secret,))
    subscription = a_subscription(target=hook)
    target = WebhookTarget(subscription, hook, reach=Reach.LOOPBACK)
    return [await target.deliver(message, subscription) for message in samples()]


async def listening(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
