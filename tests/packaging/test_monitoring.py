"""Alert rules and the dashboard: every metric that they name exists, and rules do what they say."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]  # its types are another package

from forewarned.control.v1.metrics import Metrics
from tests.builders import NOON
from tests.packages import need

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "packaging" / "monitoring"
RULES: Final = FOLDER / "forewarned-alerts.yaml"
DASHBOARD: Final = FOLDER / "forewarned-dashboard.json"
NAME: Final = re.compile(r"\bforewarned_[a-z_]+\b")


def known() -> set[str]:
    """As servers and agents show them."""
    shown = (
        Metrics()
        .render(events={}, tasks={}, drains={}, scopes=0, now=NOON, lag=timedelta(0))
        .decode()
    )
    types = re.findall(r"^# TYPE (\S+) (\S+)$", shown, re.MULTILINE)
    names = {name for name, kind in types if kind != "histogram"}
    for name, kind in types:
        if kind == "histogram":
            names |= {f"{name}_{suffix}" for suffix in ("bucket", "count", "sum")}
    agents = (ROOT / "src" / "forewarned" / "agent" / "status" / "metrics.py").read_text()
    return names | {
        f"forewarned_agent_{name}" for name in re.findall(r'^ +"([a-z_]+)",$', agents, re.MULTILINE)
    }


def panels() -> Iterator[Any]:  # JSON, which tests look into
    yield from json.loads(DASHBOARD.read_text())["panels"]


def rules() -> Iterator[Any]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]


def test_every_metric_of_the_dashboard_exists() -> None:
    asked = {
        name
        for panel in panels()
        for target in panel.get("targets", ())
        for name in NAME.findall(target["expr"])
    }

    assert asked - known() == set()


@pytest.mark.parametrize("family", ["forewarned_history_", "forewarned_subscription_"])
def test_all_that_is_counted_of_history_and_of_subscriptions_has_a_panel(family: str) -> None:
    counted = {name for name in known() if name.startswith(family) and "_created" not in name}

    assert counted
    assert {name for name in counted if name not in DASHBOARD.read_text()} == set()


def test_every_metric_of_the_rules_exists() -> None:
    asked = {name for rule in rules() for name in NAME.findall(rule["expr"])}

    assert asked - known() == set()


def test_panels_have_names_and_places_of_their_own() -> None:
    found = list(panels())
    places = [tuple(panel["gridPos"].values()) for panel in found]

    assert len({panel["id"] for panel in found}) == len(found)
    assert len(set(places)) == len(places)
    assert all(panel["title"] for panel in found)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in found)


def test_every_alert_says_what_happened_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]


@pytest.mark.thorough
def test_promtool_finds_the_rules_sound_and_their_tests_green() -> None:
    promtool = need("promtool")

    for words in (("check", "rules", RULES.name), ("test", "rules", "forewarned-alerts-test.yaml")):
        done = subprocess.run(
            [promtool, *words], cwd=FOLDER, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
