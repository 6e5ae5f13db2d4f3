"""`forewarned sources`."""

import json
from collections.abc import Iterator

import pytest

from tests.cli.served import Served, serving

WEB = {"vm_id": "5b0b8a3e-0000-4000-8000-000000000001", "name": "shop", "host": "hv-a"}


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as found:
        yield found


def report(served: Served, **told: object) -> None:
    body = {"holder": "hv-a:1", "every": 30, "vms": None, **told}
    served.start(served.steered.post("/v1/sources/rack1/listing", body)).result()


def test_sources_are_listed_with_how_their_last_listing_went(served: Served) -> None:
    before = served.run("sources", "list")
    report(served, vms=[WEB])
    listed = served.run("sources", "list")
    report(served, vms=[], silent={"hv-b": "no route"})
    partial = served.run("sources", "list")
    report(served, error="Keystone answered 503")
    failed = served.run("sources", "list")
    asked = json.loads(served.run("sources", "list", "--json").stdout)
    served.run("clock", "step", "5m")
    overdue = served.run("sources", "list")

    assert before.stdout == "no source has reported a listing yet\n"
    rows = [" ".join(line.split()) for line in listed.stdout.splitlines()]
    assert rows[:2] == [
        "Source VMs Listed completely Last report By",
        "rack1 1 0s ago 0s ago hv-a:1",
    ]
    assert rows[2].startswith("rack1: shop: its platform gives it no address")
    assert "without hv-b (no route)" in " ".join(partial.stdout.split())
    assert "failed: Keystone answered 503" in " ".join(failed.stdout.split())
    assert "5m ago, overdue: is its actuator running?" in " ".join(overdue.stdout.split())
    assert [source["name"] for source in asked["sources"]] == ["rack1"]


def test_a_source_is_forgotten_and_its_vms_stay(served: Served) -> None:
    report(served, vms=[WEB])

    refused = served.run("sources", "forget", "rack1")
    served.run("clock", "step", "1m")
    forgotten = served.run("sources", "forget", "rack1")
    again = served.run("sources", "forget", "rack1")

    assert refused.exit_code == 1
    assert "remove its table [[sources]] from the settings" in refused.stderr
    assert forgotten.stdout == "forgot rack1; its VMs stay in the fleet: 1\n"
    assert "shop" in served.run("fleet", "show").stdout
    assert again.exit_code == 1
    assert "no source 'rack1' has reported a listing yet" in again.stderr
