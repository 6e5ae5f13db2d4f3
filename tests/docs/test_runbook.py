"""docs/runbook.md: each alert has a row, and what alerts tell operators to type can be typed."""

import re
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]  # its types are another package

from tests.docs.pages import PAGES, ROOT
from tests.docs.test_commands import mistake, words_of

ALERTS: Final[list[Any]] = [  # what YAML is made of
    rule
    for group in yaml.safe_load(
        (ROOT / "packaging" / "monitoring" / "forewarned-alerts.yaml").read_text(encoding="utf-8")
    )["groups"]
    for rule in group["rules"]
]


def test_every_alert_has_a_row_and_every_row_is_an_alert() -> None:
    _, _, table = PAGES["runbook.md"].partition("## When an alert fires")

    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [each["alert"] for each in ALERTS]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_what_an_alert_tells_to_type_can_be_typed(alert: Any) -> None:
    typed = re.findall(r"`forewarned ([^`]+)`", alert["annotations"]["description"])

    assert [why for text in typed if (why := mistake(words_of(text), whole=True))] == []
