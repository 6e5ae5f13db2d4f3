from forewarned.core.ids import ScopeId
from forewarned.service.records import Saved
from forewarned.storage.sqlite.scope_cache import ScopeCache
from tests.builders import A, a_resource, a_scope, an_event

SCOPE1, SCOPE2 = ScopeId("scope1"), ScopeId("scope2")


def saved(id: str = "scope1", *, vms: int = 1, revision: int = 1) -> Saved:
    resources = [a_resource(f"{id}-vm{number}") for number in range(vms)]
    return Saved(scope=a_scope(id=id, resources=resources), revision=revision)


def test_what_was_loaded_is_found() -> None:
    cache = ScopeCache()
    cache.loaded(saved())

    assert cache.find(SCOPE1) == saved()
    assert cache.find(SCOPE2) is None


def test_what_a_work_has_written_is_known_to_the_next_of_its_group() -> None:
    cache = ScopeCache()
    cache.loaded(saved(revision=1))

    cache.written({SCOPE1: saved(revision=2)})

    assert cache.find(SCOPE1) == saved(revision=2)


def test_what_was_committed_stays_known() -> None:
    cache = ScopeCache()
    cache.written({SCOPE1: saved(revision=2)})

    cache.committed()
    cache.written({SCOPE2: saved("scope2")})

    assert cache.find(SCOPE1) == saved(revision=2)


def test_after_a_failed_commit_nothing_is_known() -> None:
    cache = ScopeCache()
    cache.loaded(saved(revision=1))
    cache.written({SCOPE2: saved("scope2")})

    cache.forget()

    assert cache.find(SCOPE1) is None
    assert cache.find(SCOPE2) is None


def test_what_has_not_been_asked_for_the_longest_makes_room() -> None:
    cache = ScopeCache(limit=24)
    for number in range(4):
        cache.loaded(saved(f"scope{number}", vms=5))
    cache.find(ScopeId("scope0"))

    cache.loaded(saved("newcomer", vms=5))

    found = [cache.find(ScopeId(f"scope{number}")) is not None for number in range(4)]
    assert found == [True, False, True, True]
    assert cache.find(ScopeId("newcomer")) is not None


def test_a_scope_takes_as_much_room_as_it_has_vms_and_events() -> None:
    cache = ScopeCache(limit=5)
    cache.loaded(saved("scope2", vms=1))
    cache.loaded(Saved(scope=a_scope(an_event(A)), revision=1))
    cache.loaded(Saved(scope=a_scope(), revision=2))

    assert cache.find(SCOPE2) is not None
    cache.loaded(saved("scope3", vms=4))

    assert cache.find(SCOPE2) is None


def test_a_scope_too_large_to_keep_is_not_kept() -> None:
    cache = ScopeCache(limit=5)

    cache.loaded(saved(vms=9))

    assert cache.find(SCOPE1) is None
