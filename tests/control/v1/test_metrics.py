"""Figures as Prometheus reads them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families

from forewarned.control.v1.app import create_app
from forewarned.control.v1.metrics import Metrics
from forewarned.service.subscriptions.model import Health
from tests.builders import NOON, SECOND
from tests.control.control_api import ControlApi


def figures(text: str) -> Mapping[tuple[str, str], float]:
    """By name and labels, those that were moved."""
    return {
        (sample.name, ",".join(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.value and not sample.name.endswith(("_created", "_bucket"))
    }


def test_what_listeners_count_is_added_up() -> None:
    metrics = Metrics()

    metrics.add({"documents": 3, "unmodified": 2, "waits": 1, "refused_too_many_requests": 4})
    metrics.add({"documents": 1, "approvals": 5})

    text = metrics.render(
        events={}, tasks={}, drains={}, scopes=0, now=NOON, lag=timedelta(0)
    ).decode()
    assert figures(text) == {
        ("forewarned_polls_total", "document"): 4,
        ("forewarned_polls_total", "unmodified"): 2,
        ("forewarned_waits_total", ""): 1,
        ("forewarned_approvals_total", ""): 5,
        ("forewarned_refusals_total", "too_many_requests"): 4,
    }


def test_how_long_things_took_is_kept() -> None:
    metrics = Metrics()

    metrics.committed(0.003)
    metrics.woke(timedelta(seconds=2))

    seen = figures(
        metrics.render(events={}, tasks={}, drains={}, scopes=0, now=NOON, lag=SECOND).decode()
    )
    assert seen["forewarned_commit_seconds_count", ""] == 1
    assert seen["forewarned_commit_seconds_sum", ""] == 0.003
    assert seen["forewarned_wake_lateness_seconds_sum", ""] == 2
    assert seen["forewarned_store_lag_seconds", ""] == 1


def test_subscriptions_are_counted_as_the_store_counts_them() -> None:
    metrics = Metrics()

    metrics.add_subscriptions({"gone": Health(delivered=1)})
    metrics.add_subscriptions({"ops": Health(delivered=5, failed=4, undelivered=3, removed=2)})

    text = metrics.render(
        events={}, tasks={}, drains={}, scopes=0, now=NOON, lag=timedelta(0)
    ).decode()
    assert figures(text) == {
        ("forewarned_subscription_delivered_total", "ops"): 5,
        ("forewarned_subscription_failed_attempts_total", "ops"): 4,
        ("forewarned_subscription_undelivered", "ops"): 3,
        ("forewarned_subscription_removed_total", "ops"): 2,
    }


async def test_the_listener_shows_what_there_is_and_what_happened(control: ControlApi) -> None:
    counted = {"documents": 7}
    services = replace(control.services, take_counts=lambda: counted)
    control.services.engine.tell(services.metrics.hear)
    control.http._transport.app = create_app(services)  # type: ignore[attr-defined]
    await control.switch_on("web")
    await control.schedule("Reboot", "web")
    await control.post("/v1/clock/step", {"by": "1m"})

    answer = await control.http.get("/metrics")

    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    seen = figures(answer.text)
    assert seen["forewarned_polls_total", "document"] == 7
    assert seen["forewarned_events", "Scheduled,Reboot"] == 1
    assert seen["forewarned_transitions_total", "scheduled,Reboot"] == 1
    assert seen["forewarned_scopes", ""] == 5
    assert seen["forewarned_newest_change_age_seconds", ""] == 60
