"""Deleting instances of a scale set with notice, told with the real az and a moved clock."""

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from tests.end_to_end.az import GROUP, Azure

UNTIL_GONE = "30m"
"""Longer than any delete takes, once it has started."""


def test_two_instances_deleted_at_once_go_when_both_are_approved_and_not_before(
    cloud: Azure,
) -> None:
    """I17: the whole placement group sees both, and one approval of two moves nothing."""
    made(cloud, "both", instances=3)
    read_by_all(cloud, "both_0", "both_1", "both_2")
    called_at = now(cloud)

    with cloud.waiting(*delete("both", "1", "2"), events=2) as deleting:
        first, second = shown = cloud.document("both_0")["Events"]
        others = [cloud.document(vm)["Events"] for vm in ("both_1", "both_2")]
        cloud.approve("both_1", first["EventId"])
        one_approved = cloud.document("both_0")["Events"]
        instances_by_then = instances(cloud, "both")
        had_returned = deleting.has_returned
        cloud.approve("both_2", second["EventId"])
        both_approved = cloud.document("both_0")["Events"]
        cloud.step(UNTIL_GONE)
        deleting.result()

    assert others == [shown, shown]
    assert [(each["EventType"], each["Resources"]) for each in shown] == [
        ("Terminate", ["both_1"]),
        ("Terminate", ["both_2"]),
    ]
    assert [minutes_of_notice(each, called_at) for each in shown] == [10, 10]
    assert statuses(one_approved) == ["Scheduled", "Scheduled"]
    assert instances_by_then == {"0": True, "1": True, "2": True}
    assert not had_returned
    assert statuses(both_approved) == ["Started", "Started"]
    assert instances(cloud, "both") == {"0": True}
    assert cloud.document("both_0")["Events"] == []


@pytest.mark.thorough
def test_two_instances_deleted_at_once_go_when_their_time_is_up(cloud: Azure) -> None:
    """I1, I17: an approval of one of two does not shorten the notice by a second."""
    made(cloud, "late", instances=3)
    read_by_all(cloud, "late_0")

    with cloud.waiting(*delete("late", "0", "2"), events=2) as deleting:
        cloud.approve("late_0", cloud.document("late_0")["Events"][0]["EventId"])
        cloud.step("9m59s")
        a_second_early = cloud.document("late_1")["Events"]
        cloud.step("1s")
        on_time = cloud.document("late_1")["Events"]
        cloud.step(UNTIL_GONE)
        deleting.result()

    assert statuses(a_second_early) == ["Scheduled", "Scheduled"]
    assert statuses(on_time) == ["Started", "Started"]
    assert instances(cloud, "late") == {"1": True}


@pytest.mark.thorough
def test_an_instance_keeps_the_notice_of_the_model_it_was_made_from(cloud: Azure) -> None:
    made(cloud, "old", instances=3)
    read_by_all(cloud, "old_0")
    cloud.az(*on("update", "old"), "--terminate-notification-time", "5")
    outdated = instances(cloud, "old")
    cloud.az(*on("update-instances", "old"), "--instance-ids", "2")
    brought_up = instances(cloud, "old")
    called_at = now(cloud)

    with (
        cloud.waiting(*delete("old", "1")) as deleting_old,
        cloud.waiting(*delete("old", "2")) as deleting_new,
    ):
        shown = {each["Resources"][0]: each for each in cloud.document("old_0")["Events"]}
        cloud.step(UNTIL_GONE)
        deleting_old.result()
        deleting_new.result()

    assert outdated == {"0": False, "1": False, "2": False}
    assert brought_up == {"0": False, "1": False, "2": True}
    assert minutes_of_notice(shown["old_1"], called_at) == 10
    assert minutes_of_notice(shown["old_2"], called_at) == 5


@pytest.mark.thorough
def test_scaling_in_gives_notice_and_no_instance_id_comes_back(cloud: Azure) -> None:
    made(cloud, "size", instances=3)
    read_by_all(cloud, "size_0", "size_1", "size_2")

    with cloud.waiting(*on("scale", "size"), "--new-capacity", "2") as scaling:
        [leaving] = cloud.document("size_0")["Events"]
        cloud.approve(leaving["Resources"][0], leaving["EventId"])
        cloud.step(UNTIL_GONE)
        scaled_in = scaling.result()
    cloud.az(*on("scale", "size"), "--new-capacity", "4")

    assert leaving["EventType"] == "Terminate"
    assert scaled_in["sku"]["capacity"] == 2
    gone = leaving["Resources"][0].removeprefix("size_")
    assert set(instances(cloud, "size")) == {"0", "1", "2", "3", "4"} - {gone}


@pytest.mark.thorough
def test_a_set_whose_notices_are_switched_off_is_scaled_in_at_once(cloud: Azure) -> None:
    made(cloud, "quiet", instances=2)
    read_by_all(cloud, "quiet_0")
    cloud.az(*on("update", "quiet"), "--enable-terminate-notification", "false")
    cloud.az(*on("update-instances", "quiet"), "--instance-ids", "*")

    cloud.az(*delete("quiet", "1"))

    assert instances(cloud, "quiet") == {"0": True}


@pytest.mark.thorough
def test_a_set_none_of_whose_vms_has_ever_asked_is_deleted_at_once(cloud: Azure) -> None:
    """None of its VMs listens, so there is no approval to wait for."""
    made(cloud, "deaf", instances=2)

    cloud.az(*on("delete", "deaf"))

    assert "deaf" not in {
        each["name"] for each in cloud.az("vmss", "list", "--resource-group", GROUP)
    }


def made(cloud: Azure, name: str, *, instances: int) -> None:
    """A Uniform set, whose instances are numbered, with ten minutes' notice."""
    cloud.az(
        *on("create", name),
        *("--orchestration-mode", "Uniform", "--instance-count", str(instances)),
        *("--image", "UbuntuLTS", "--admin-username", "someone", "--generate-ssh-keys"),
        *("--terminate-notification-time", "10"),
    )


def on(command: str, name: str) -> tuple[str, ...]:
    return ("vmss", command, "--resource-group", GROUP, "--name", name)


def delete(name: str, *instance_ids: str) -> tuple[str, ...]:
    return (*on("delete-instances", name), "--instance-ids", *instance_ids)


def instances(cloud: Azure, name: str) -> dict[str, bool]:
    """Whether each is on the latest model, by instance id."""
    listed = cloud.az(*on("list-instances", name))
    return {each["instanceId"]: each["latestModelApplied"] for each in listed}


def read_by_all(cloud: Azure, *vms: str) -> None:
    """The first read is what makes interruptions wait for consent."""
    for vm in vms:
        assert cloud.document(vm)["Events"] == []


def statuses(events: list[dict[str, Any]]) -> list[str]:
    return [each["EventStatus"] for each in events]


def now(cloud: Azure) -> datetime:
    return datetime.fromisoformat(cloud.server.call("GET", "/v1/clock")["now"])


def minutes_of_notice(event: dict[str, Any], called_at: datetime) -> int:
    """Whole ones: NotBefore is rounded up to the next second."""
    notice = parsedate_to_datetime(event["NotBefore"]) - called_at
    return notice // timedelta(minutes=1)
