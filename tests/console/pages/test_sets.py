"""Scale sets by the portal's own steps."""

import re
from dataclasses import replace

import pytest

from forewarned.console.pages import sets
from forewarned.service.azure.inventory import ScaleSetView
from forewarned.service.azure.models.scale_set import (
    DeclaredScaleSet,
    UpgradeMode,
    declared_set,
)
from tests.console.console_client import ConsoleClient, console_client, text_of


async def _create(console: ConsoleClient, **fields: str) -> str:
    usual = {
        "name": "shop",
        "group": "shop",
        "capacity": "2",
        "mode": "Uniform",
        "notified": "on",
        "delay": "10",
    }
    answer = await console.send("/sets/new", **{**usual, **fields})
    assert answer.status_code == 303, text_of(answer.text)
    return str(answer.headers["Location"])


async def test_a_set_with_a_ten_minute_delay_gives_ten_minutes_notice(
    console: ConsoleClient,
) -> None:
    where = await _create(console)
    await console.switch_on("shop_0")

    await console.confirm("/actions/delete", vm="shop_1")

    page = text_of(await console.see(where))
    [event] = await console.events()
    assert (event["type"], event["resources"]) == ("Terminate", ["shop_1"])
    assert event["not_before"].endswith("12:10:00Z")
    assert "shop_0 running yes 10m" in page


async def test_instances_keep_their_model_until_they_are_brought_to_the_latest(
    console: ConsoleClient,
) -> None:
    where = await _create(console, notified="off")
    path = re.sub(r"&done=.*", "", where)
    await console.send(path, capacity="2", notified="on", delay="7")
    edited = await console.see(path)
    scope = text_of(await console.see("/scopes/vmss/shop/0"))
    [set_path] = re.findall(r'name="id" value="([^"]*)"', edited)

    await console.send("/sets/upgrade", id=set_path)

    upgraded = text_of(await console.see(path))
    assert "2 instances are on an older model" in text_of(edited)
    assert 'id="delay" name="delay" type="number" min="5" max="15" value="7"' in edited
    assert "older model" in scope
    assert "All are on the latest model" in upgraded
    assert "shop_1 running yes 7m" in upgraded


async def test_one_instance_on_an_older_model_is_told(console: ConsoleClient) -> None:
    where = re.sub(r"&done=.*", "", await _create(console, capacity="1", notified="off"))
    await console.send(where, capacity="1", notified="on", delay="7")

    told = text_of(await console.see(where))

    assert "1 instance is on an older model. It keeps its model until it is upgraded" in told


async def test_a_set_of_the_fleet_can_be_edited_and_scaled(console: ConsoleClient) -> None:
    page = await console.see("/sets")
    [where] = re.findall(r'href="(/sets/edit[^"]*)"', page)
    shown = await console.see(where)

    await console.send(where, capacity="4", notified="on", delay="5")

    assert 'value="5"' in shown
    assert "4 instances" in text_of(await console.see(where))


async def test_each_mistake_stands_beside_its_field(console: ConsoleClient) -> None:
    wrong = {
        "name": {"name": "<script>"},
        "group": {"group": "nowhere"},
        "capacity": {"capacity": "many"},
        "delay": {"delay": "16"},
        "size": {"size": "no size"},
        "notified": {"spot": "on"},
    }
    for field, fields in wrong.items():
        usual = {"name": "x", "group": "shop", "capacity": "1", "notified": "on", "delay": "5"}

        answer = await console.send("/sets/new", **{**usual, **fields})

        assert answer.status_code == 400
        assert f'id="problem-{field}"' in answer.text, text_of(answer.text)
    assert (await console.see("/sets")).count("/sets/edit") == 1


async def test_a_name_that_is_taken_is_refused(console: ConsoleClient) -> None:
    answer = await console.send(
        "/sets/new", name="api", group="SHOP2", capacity="1", notified="off", delay="5"
    )

    assert answer.status_code == 400


async def test_creating_never_changes_a_set_that_exists(console: ConsoleClient) -> None:
    where = await _create(console, capacity="3")

    for step in ("preview", "send"):
        answer = await console.send(
            "/sets/new", name="SHOP", group="shop", capacity="0", notified="off", step=step
        )

        assert answer.status_code == 400
        assert "already exists" in text_of(answer.text)
        assert 'id="problem-name"' in answer.text
    assert "3 instances" in text_of(await console.see(where))


async def test_an_unknown_set_has_no_page(console: ConsoleClient) -> None:
    await console.see("/sets/edit?id=nothing", 400)
    path = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/n"
    await console.see(f"/sets/edit?id={path}", 404)


async def test_the_list_counts_who_stays_who_leaves_and_who_is_behind(
    console: ConsoleClient,
) -> None:
    where = await _create(console)
    await console.switch_on("shop_0")
    await console.confirm("/actions/delete", vm="shop_1")
    await console.send(re.sub(r"&done=.*", "", where), capacity="1", notified="off", delay="5")
    await _create(console, name="none", capacity="0", mode="Flexible")

    page = text_of(await console.see("/sets"))

    assert "api shop 2 instances Uniform all up to date" in page
    assert "none shop 0 instances Flexible" in page
    assert "shop shop 1 instance and 1 leaving Uniform 2 behind the latest model" in page


async def test_scaling_in_tells_who_goes_and_when_before_it_is_saved(
    console: ConsoleClient,
) -> None:
    where = re.sub(r"&done=.*", "", await _create(console, capacity="3"))
    await console.switch_on("shop_0")

    fewer = await console.send(where, capacity="1", notified="on", delay="10", step="preview")
    more = await console.send(where, capacity="5", notified="on", delay="10", step="preview")

    assert "Terminate shop_2 in vmss/shop/0" in text_of(fewer.text)
    assert "(in 10m) if none does" in text_of(fewer.text)
    assert "2 instances are created at once: shop_3, shop_4." in text_of(more.text)
    assert await console.events() == []
    assert "3 instances" in text_of(await console.see(where))


async def test_creating_tells_what_is_made_before_anything_is(console: ConsoleClient) -> None:
    """I7: what is told is what comes of the same use case, and a rehearsal keeps nothing."""
    fields = {"name": "shop", "group": "shop", "capacity": "2", "mode": "Uniform"}
    notified = {**fields, "notified": "on", "delay": "10"}

    told = await console.send("/sets/new", **notified, step="preview")
    quiet = await console.send("/sets/new", **fields, notified="off", step="preview")
    empty = await console.send("/sets/new", **{**notified, "capacity": "0"}, step="preview")

    assert "created at once, with 2 instances: shop_0, shop_1." in text_of(told.text)
    assert "gets a Terminate event and 10m to prepare" in text_of(told.text)
    assert "deleted later gets no notice" in text_of(quiet.text)
    assert "at once, without instances" in text_of(empty.text)
    assert 'value="10"' in told.text
    assert "shop_0" not in text_of(await console.see("/fleet"))
    assert (await console.see("/sets")).count("/sets/edit") == 1


async def test_saving_tells_who_keeps_an_older_model_and_what_stays_as_it_is(
    console: ConsoleClient,
) -> None:
    where = re.sub(r"&done=.*", "", await _create(console))

    changed = await console.send(where, capacity="2", notified="off", step="preview")
    same = await console.send(where, capacity="2", notified="on", delay="10", step="preview")

    assert "Existing instances keep theirs until you upgrade them to the latest" in text_of(
        changed.text
    )
    assert "Nothing changes" in text_of(same.text)
    assert "All are on the latest model" in text_of(await console.see(where))


async def test_the_page_says_whether_saving_upgrades_instances(
    console: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def automatic(view: ScaleSetView) -> DeclaredScaleSet:
        return replace(declared_set(view), upgrade_mode=UpgradeMode.AUTOMATIC)

    where = re.sub(r"&done=.*", "", await _create(console))

    assert "Existing instances keep theirs until they are" in text_of(await console.see(where))
    monkeypatch.setattr(sets, "declared_set", automatic)
    assert "upgrades its instances at once" in text_of(await console.see(where))


async def test_saving_an_old_page_takes_back_nothing_that_others_have_changed(
    console: ConsoleClient,
) -> None:
    where = re.sub(r"&done=.*", "", await _create(console))
    page = await console.see(where)
    shown = dict(re.findall(r'name="(was_\w+)" value="([^"]*)"', page))
    await console.send(where, capacity="5", notified="on", delay="10")

    told = await console.send(
        where, **shown, capacity="2", notified="on", delay="7", step="preview"
    )
    await console.send(where, **shown, capacity="2", notified="on", delay="7")

    untouched = {name.removeprefix("was_"): value for name, value in shown.items()}
    same = await console.send(where, **shown, **untouched, step="preview")
    after = await console.see(where)
    assert "Nothing changes" in text_of(same.text)
    assert shown == {"was_capacity": "2", "was_notified": "on", "was_delay": "10"}
    assert dict(re.findall(r'name="(was_\w+)" value="([^"]*)"', told.text)) == shown
    assert "5 instances" in text_of(after)
    assert 'max="15" value="7"' in after


async def test_saving_another_delay_makes_no_new_instance_for_one_that_leaves(
    console: ConsoleClient,
) -> None:
    where = re.sub(r"&done=.*", "", await _create(console))
    await console.switch_on("shop_0")
    await console.confirm("/actions/delete", vm="shop_1")
    page = await console.see(where)
    shown = dict(re.findall(r'name="(was_\w+)" value="([^"]*)"', page))

    await console.send(where, **shown, capacity="1", notified="on", delay="7")

    assert "1 instance and 1 leaving, in shop" in text_of(await console.see(where))


async def test_bringing_instances_to_the_latest_model_is_told_beforehand(
    console: ConsoleClient,
) -> None:
    where = re.sub(r"&done=.*", "", await _create(console, notified="off"))
    await console.send(where, capacity="2", notified="on", delay="7")

    told = await console.send(where, step="preview-upgrade")

    words = text_of(told.text)
    assert told.status_code == 200
    assert "2 instances are upgraded to the latest model at once: shop_0, shop_1." in words
    assert "gets a Terminate event and 7m to prepare" in words
    assert "2 instances are on an older model" in text_of(await console.see(where))


async def test_many_sets_are_listed_a_page_at_a_time_and_found_by_name() -> None:
    sets = [{"name": f"set-{number:03}", "capacity": 1} for number in range(120)]
    async with console_client(fleet={"scale_sets": sets}) as console:
        first = await console.see("/sets")
        [after] = re.findall(r'href="(/sets\?find=&amp;after=[^"]*)"', first)
        second = await console.see(after.replace("&amp;", "&"))
        last = await console.see("/sets?after=set-099")
        found = await console.see("/sets?find=SET-11")
        none = await console.see("/sets?find=nothing")

    assert first.count("/sets/edit") == second.count("/sets/edit") == 25
    assert "set-024" in first
    assert "set-025" in second
    assert "First page" in second
    assert last.count("/sets/edit") == 20
    assert ">Next<" not in last
    assert found.count("/sets/edit") == 10
    assert "No scale set matches" in text_of(none)
    assert all('id="sets" data-live' in page for page in (first, second, last, found))


async def test_a_set_beyond_those_listed_can_still_be_scaled_by_its_address() -> None:
    sets = [{"name": f"more-{number:03}", "capacity": 1} for number in range(210)]
    sets += [{"name": "zebra", "capacity": 2}]
    async with console_client(fleet={"scale_sets": sets}) as console:
        [path] = re.findall(r'/sets/edit\?id=([^"]*)"', await console.see("/sets?find=zebra"))
        page = await console.see(f"/actions/scale?set={path}")

    assert "zebra, now 2" in page
    assert "Only the first" in text_of(page)


async def test_a_set_can_be_the_first_thing_there_is() -> None:
    fields = {"name": "shop", "capacity": "1", "notified": "off", "new_group": "main"}
    async with console_client(fleet={}) as console:
        form = text_of(await console.see("/sets/new"))

        told = await console.send("/sets/new", **fields, step="preview")
        before = await console.ask("/v1/fleet")
        made = await console.send("/sets/new", **fields, step="send")
        page = text_of(await console.see(made.headers["Location"]))
        again = await console.send("/sets/new", **{**fields, "name": "other"}, step="send")

        assert "There are no resource groups yet: one with this name is created" in form
        assert "The resource group main is created at once" in text_of(told.text)
        assert before["scopes"] == []
        assert "Uniform, 1 instance in main" in page
        assert again.status_code == 400
        assert 'id="problem-new_group"' in again.text
        assert 'value="main"' in again.text


async def test_a_resource_group_needs_a_name_that_can_be_one(console: ConsoleClient) -> None:
    fields = {"name": "shop", "capacity": "1", "notified": "off", "new_group": "no/such."}

    answer = await console.send("/sets/new", **fields, step="send")

    assert answer.status_code == 400
    assert 'id="problem-new_group"' in answer.text
    assert (await console.see("/sets")).count("/sets/edit") == 1
