"""`[[subscriptions]]` of the settings file."""

from pathlib import Path

import pytest

from forewarned.core.model import EventType
from forewarned.runtime.settings import Resolved, SettingsError, load
from forewarned.service.subscriptions.model import Filter, PublishedStatus
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.subscriptions import Declared
from forewarned.service.subscriptions.targets import Apprise, Webhook
from forewarned.targets.addresses import Reach


def resolved(folder: Path, text: str) -> Resolved:
    path = folder / "forewarned.toml"
    path.write_text(text)
    return load(flags={}, environ={}, path=path)


def test_subscriptions_are_read_with_target_shape_and_filter(tmp_path: Path) -> None:
    (tmp_path / "text.j2").write_text("{{ event.type }} of {{ vms | join(', ') }}")

    found = resolved(
        tmp_path,
        """
        mode = "service"

        [[subscriptions]]
        name = "ops"
        target = { kind = "webhook", url = "https://ops.example/events", secret_file = "ops.secret" }
        shape = "event-grid"
        filter = { types = ["Reboot"], statuses = ["Stalled"], vms = ["web-*"] }

        [[subscriptions]]
        name = "chat"
        target = { kind = "apprise", url = "slack://hidden" }
        shape = { kind = "template", template_file = "text.j2" }
        """,
    )

    assert found.subscriptions.declared() == (
        Declared(
            name="ops",
            target=Webhook(
                url="https://ops.example/events", secret_file=str(tmp_path / "ops.secret")
            ),
            shape=Shape(name=ShapeName.EVENT_GRID),
            filter=Filter(
                types=frozenset({EventType.REBOOT}),
                statuses=frozenset({PublishedStatus.STALLED}),
                vms=("web-*",),
            ),
        ),
        Declared(
            name="chat",
            target=Apprise(url="slack://hidden"),
            shape=Shape(
                name=ShapeName.TEMPLATE, template="{{ event.type }} of {{ vms | join(', ') }}"
            ),
        ),
    )
    assert ("subscriptions.ops", "https://ops.example", f"file {tmp_path}/forewarned.toml") in (
        found.listing()
    )
    assert "hidden" not in str(found.listing())


def test_every_mistake_is_found_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as error:
        resolved(
            tmp_path,
            """
[[subscriptions]]
name = "Ops"
target = { kind = "webhook", url = "https://ops.example" }
filter = { types = ["Rebot"] }

[[subscriptions]]
name = "two"
target = { kind = "webhok", url = "https://ops.example" }

[[subscriptions]]
name = "two"
target = { kind = "webhook", url = "https://ops.example", scret = "x" }

[[subscriptions]]
name = "text"
target = { kind = "webhook", url = "https://ops.example", secret_file = "x" }
shape = { kind = "template", template = "{{ self }}" }
            """,
        )

    lines = [line.split("forewarned.toml:")[1] for line in error.value.mistakes]
    assert [line.split(":")[0] for line in lines] == ["5", "9", "13", "18"]
    assert "did you mean" in lines[0]


def test_names_are_checked_and_used_once(tmp_path: Path) -> None:
    target = 'target = { kind = "webhook", url = "https://ops.example", secret_file = "x" }'
    with pytest.raises(SettingsError) as error:
        resolved(
            tmp_path,
            f"""
[[subscriptions]]
name = "Ops"
{target}
[[subscriptions]]
name = "two"
{target}
[[subscriptions]]
name = "two"
{target}
            """,
        )

    assert [line.split("forewarned.toml:")[1][:1] for line in error.value.mistakes] == ["3", "9"]


def test_a_webhook_has_a_secret_of_its_own_as_one_that_is_made_here_nobody_would_see(
    tmp_path: Path,
) -> None:
    with pytest.raises(SettingsError) as error:
        resolved(
            tmp_path,
            """
[[subscriptions]]
name = "ops"
target = { kind = "webhook", url = "https://ops.example/?token=hidden" }
            """,
        )

    [mistake] = error.value.mistakes
    assert "forewarned.toml:4: subscriptions[0].target" in mistake
    assert (
        "openssl rand -base64 32) > webhook.secret`, and name that file with secret_file" in mistake
    )
    assert "hidden" not in mistake


def test_one_table_is_not_tables(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"expected tables like \[\[subscriptions\]\]"):
        resolved(tmp_path, '[subscriptions]\nname = "ops"\n')


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("", Reach.LOOPBACK),
        ('emulator_access = "network"', Reach.PUBLIC),
        ('mode = "service"', Reach.PUBLIC),
        ('mode = "service"\npublishing_private_addresses = true', Reach.PRIVATE),
        ("publishing_private_addresses = true", Reach.PRIVATE),
    ],
)
def test_messages_stay_off_private_networks_unless_they_are_allowed(
    tmp_path: Path, text: str, reach: Reach
) -> None:
    assert resolved(tmp_path, text).settings.reach is reach
