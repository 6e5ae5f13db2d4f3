"""What every store answers for people who look."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forewarned.core.change import without_event
from forewarned.core.ids import HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import EventStatus, ScopeKind
from forewarned.core.transitions import Activated, Canceled, Deactivated, ResourceRemoved
from forewarned.service.listings import EventFilter, HistoryFilter
from forewarned.service.ports import Store
from tests.builders import HOUR, MINUTE, NOON, A, B, C, a_resource, a_scope, an_event
from tests.storage.store_calls import keep, save

EVERY_KIND = frozenset(ScopeKind)


async def keep_names(store: Store) -> None:
    await keep(
        store,
        a_scope(
            an_event(A, resources=["Web-1"]),
            id="avset/Web",
            resources=[a_resource("Web-1", host="Rack1"), a_resource("db-web", host="rack2")],
        ),
        a_scope(
            id="vm/old-web",
            kind=ScopeKind.VIRTUAL_MACHINE,
            resources=[a_resource("old-web", host="rack1-b")],
        ),
        a_scope(id="empty", resources=[], active=False),
    )


# --- names ---------------------------------------------------------------------------------------


async def test_vms_are_found_by_any_part_of_their_name_those_that_begin_so_first(
    store: Store,
) -> None:
    await keep_names(store)

    found = await store.read(lambda s: s.vms_like("WEB", limit=9))

    assert found == [
        ("Web-1", "avset/Web", "Rack1"),
        ("db-web", "avset/Web", "rack2"),
        ("old-web", "vm/old-web", "rack1-b"),
    ]


@pytest.mark.parametrize(
    ("text", "limit", "found"),
    [("web", 1, ["Web-1"]), ("", 2, ["db-web", "old-web"]), ("%", 9, []), ("web", 0, [])],
)
async def test_no_more_vms_are_found_than_wanted(
    store: Store, text: str, limit: int, found: list[str]
) -> None:
    await keep_names(store)

    vms = await store.read(lambda s: s.vms_like(text, limit=limit))

    assert [vm.name for vm in vms] == found


async def test_scopes_are_found_by_name_and_kind(store: Store) -> None:
    await keep_names(store)

    every, sets = await store.read(
        lambda s: [
            s.scopes_like("web", kinds=kinds, limit=9)
            for kinds in (EVERY_KIND, EVERY_KIND - {ScopeKind.VIRTUAL_MACHINE})
        ]
    )

    assert every == ["avset/Web", "vm/old-web"]
    assert sets == ["avset/Web"]


async def test_hosts_are_found_by_name(store: Store) -> None:
    await keep_names(store)

    racks, ones, none = await store.read(
        lambda s: [s.hosts_like(text, limit=2) for text in ("RACK", "1", "x")]
    )

    assert racks == ["Rack1", "rack1-b"]
    assert ones == ["Rack1", "rack1-b"]
    assert none == []


# --- how much there is ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["avset/Web", "vm/old-web", "empty"]),
        ("EMPTY", ["empty"]),
        ("db-", ["avset/Web"]),
        ("rack1", ["avset/Web", "vm/old-web"]),
        ("nothing", []),
    ],
)
async def test_scopes_are_listed_by_their_own_name_their_vms_or_their_hosts(
    store: Store, text: str, found: list[str]
) -> None:
    await keep_names(store)

    listing = await store.read(lambda s: s.scope_listing(text, offset=0, limit=9))

    assert [scope.id for scope in listing.scopes] == found
    assert listing.found == len(found)


async def test_a_listing_counts_and_comes_in_pieces(store: Store) -> None:
    await keep_names(store)

    first, second = await store.read(
        lambda s: [s.scope_listing("", offset=offset, limit=2) for offset in (0, 2)]
    )

    assert [(scope.vms, scope.events, scope.active) for scope in first.scopes] == [
        (2, 1, True),
        (1, 0, True),
    ]
    assert [(scope.id, scope.vms, scope.last_read_at) for scope in second.scopes] == [
        ("empty", 0, None)
    ]
    assert first.found == second.found == 3


async def test_the_vms_of_scopes_that_are_named_like_that_are_told(store: Store) -> None:
    await keep_names(store)
    ids = [ScopeId("avset/Web"), ScopeId("empty")]

    every, first = await store.read(
        lambda s: [s.vms_like_in(ids, "W", limit=limit) for limit in (9, 1)]
    )

    assert every == {"avset/Web": ["Web-1", "db-web"]}
    assert first == {"avset/Web": ["Web-1"]}


async def test_a_host_counts_its_vms_and_scopes_and_tells_the_open_events_of_its_vms(
    store: Store,
) -> None:
    one, two = a_resource("vm1", host="h1"), a_resource("vm2", host="h2")
    await keep(
        store,
        a_scope(
            an_event(A, resources=["vm1", "vm2"]),
            an_event(B, resources=["vm2"]),
            resources=[one, two],
        ),
        a_scope(
            an_event(C, resources=["VM3"]), id="scope2", resources=[a_resource("VM3", host="h1")]
        ),
    )

    seen = await store.read(
        lambda s: s.host_summaries([HostName(name) for name in ("h2", "h1", "nowhere")])
    )

    assert [(host.name, host.vms, host.scopes) for host in seen] == [("h1", 2, 2), ("h2", 1, 1)]
    assert [[event.id for event in host.events] for host in seen] == [[A, C], [A, B]]


async def test_hosts_are_affected_by_the_open_events_of_their_vms(store: Store) -> None:
    vms = [a_resource(f"vm{number}", host=f"h{number}") for number in (3, 2, 1)]
    await keep(store, a_scope(an_event(A, resources=["vm3", "vm1"]), resources=vms))

    assert await store.read(lambda s: s.affected_hosts()) == ["h1", "h3"]


# --- what happened -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"since": NOON + HOUR}, [4, 3]),
        ({"until": NOON + HOUR}, [2, 1]),
        ({"since": NOON, "until": NOON + HOUR + MINUTE}, [3, 2, 1]),
        ({"since": NOON + timedelta(days=9)}, []),
        ({"until": NOON}, []),
        ({"since": NOON + MINUTE, "scope_id": ScopeId("scope1")}, [2]),
        ({"since": NOON + MINUTE, "before_id": 4}, [3, 2]),
        ({"action": "activated"}, [3, 1]),
    ],
)
async def test_history_is_narrowed_to_a_time_and_an_action(
    store: Store, wanted: dict[str, Any], found: list[int]
) -> None:
    one, two = a_scope(resources=[]), a_scope(id="scope2", resources=[])
    await keep(store, one, two)
    for scope, begin in ((one, NOON), (two, NOON + HOUR)):
        await save(
            store,
            scope,
            Activated(scope_id=scope.id, at=begin),
            Deactivated(scope_id=scope.id, at=begin + MINUTE),
        )

    rows = await store.read(lambda s: s.history(HistoryFilter(**wanted)))

    assert [row.id for row in rows] == found


async def test_an_empty_history_has_no_time(store: Store) -> None:
    assert await store.read(lambda s: s.history(HistoryFilter(since=NOON, until=NOON))) == []


async def test_the_history_of_a_vm_is_that_of_every_scope_it_has_been_in(store: Store) -> None:
    """F18: a new VM under an old name is a new VM, but what happened under the name is known."""
    over = an_event(A, resources=["vm1"])
    before = a_scope(over)
    await keep(store, before)
    ended = replace(over, status=EventStatus.CANCELED)
    await save(
        store,
        replace(without_event(before, A), resources={}),
        Canceled(scope_id=before.id, at=NOON, event=ended, reason="gone"),
        ResourceRemoved(scope_id=before.id, at=NOON, resource=ResourceName("vm1")),
    )
    gone = await store.read(lambda s: s.history(HistoryFilter(resource=ResourceName("VM1"))))
    again = a_scope(an_event(B, resources=["VM1"]), id="scope2", resources=[a_resource("VM1")])
    await keep(store, again)
    await save(store, again, Activated(scope_id=again.id, at=NOON))

    rows, events = await store.read(
        lambda s: (
            s.history(HistoryFilter(resource=ResourceName("vm1"))),
            s.events(EventFilter(resource=ResourceName("vm1"))),
        )
    )

    assert [row.action for row in gone] == ["resource_removed", "canceled"]
    assert rows == gone
    assert [record.event.id for record in events] == [A, B]


async def test_the_parts_of_a_maintenance_are_found_the_ended_ones_too(store: Store) -> None:
    over = an_event(A, resources=["vm1"], maintenance="work")
    scope = a_scope(over)
    other = a_scope(an_event(B, resources=["vm2"], maintenance="work"), id="scope2")
    await keep(store, scope, other, a_scope(an_event(C, resources=["vm3"]), id="scope3"))
    ended = replace(over, status=EventStatus.CANCELED)
    await save(
        store,
        without_event(scope, A),
        Canceled(scope_id=scope.id, at=NOON, event=ended, reason=""),
    )

    found = await store.read(lambda s: s.events(EventFilter(maintenance=MaintenanceId("work"))))

    assert [record.event.id for record in found] == [A, B]


async def test_an_event_that_has_not_changed_is_the_same_record_in_every_list(
    store: Store,
) -> None:
    """Live pages compare hundreds of them with what they drew last."""
    scope = a_scope(an_event(A), an_event(B))
    await keep(store, scope)
    before = await store.read(lambda s: s.events(EventFilter()))
    described = replace(scope.events[B], description="new words")
    await save(store, replace(scope, events={**scope.events, B: described}))

    after = await store.read(lambda s: s.events(EventFilter()))

    assert after[0] is before[0]
    assert (before[1].event, after[1].event) == (scope.events[B], described)
