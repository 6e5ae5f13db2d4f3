import msgspec

from forewarned.cli import pages
from forewarned.control.v1.wire import (
    Approval,
    Clock,
    Explained,
    FleetApplied,
    Health,
    Scopes,
    SetMaintenance,
    Sibling,
)
from forewarned.core.model import EventStatus, EventType
from tests.cli.answers import MINUTE, NOON, A, B, a_row, a_scope, a_vm, an_event
from tests.cli.printing import printed

C, D = A.replace("A", "C"), A.replace("A", "D")


def a_health(mode: str, metadata: str) -> Health:
    clock = Clock(now=NOON, speed=1, state="real")
    return Health(
        status="ok", mode=mode, version="1.0", metadata=metadata, clock=clock, store="own"
    )


EMULATOR = a_health("emulator", "http://127.0.0.1:8169")
SERVICE = a_health("service", "http://169.254.169.254:80")


def an_explanation(**facts: object) -> Explained:
    usual = {
        "waits_for": (),
        "waits_for_events": (),
        "siblings": (),
        "history": (),
        "next_step": "it starts",
    }
    return msgspec.convert({**usual, **facts}, Explained)


def a_sibling(
    event_id: str, scope: str, *resources: str, status: str = "Scheduled", ready: bool = True
) -> Sibling:
    return Sibling(
        event_id=event_id,
        type=EventType.FREEZE,
        status=EventStatus(status),
        scope=scope,
        resources=resources,
        ready=ready,
    )


def test_events_nobody_was_told_of_come_with_the_way_to_be_told() -> None:
    unseen = [
        an_event(announced=False),
        an_event(B, announced=False),
        an_event(scope="vm/db", announced=False, resources=("db",)),
        an_event(scope="vm/seen"),
    ]

    assert printed(pages.notice_page(unseen, EMULATOR)) == [
        "",
        "No VM reads the document of vm/web, vm/db, so the work was carried out without",
        "notice.",
        "The first read of a document switches notice on:",
        "  curl -H Metadata:true 'http://127.0.0.1:8169/vm/web/metadata/scheduledevents?api-version=2020-07-01'",
        "  curl -H Metadata:true 'http://127.0.0.1:8169/vm/db/metadata/scheduledevents?api-version=2020-07-01'",
    ]


def test_in_service_mode_only_the_vm_itself_can_read_its_document() -> None:
    lines = printed(pages.notice_page([an_event(announced=False)], SERVICE))

    assert lines[1:] == [
        "No VM reads the document of vm/web, so the work was started without notice.",
        "The first read of a document, by one of its VMs, switches notice on:",
        "  curl -H Metadata:true 'http://169.254.169.254:80/metadata/scheduledevents?api-version=2020-07-01'",
    ]


def test_one_command_line_does_for_all_scopes_in_service_mode() -> None:
    unseen = [an_event(announced=False), an_event(B, scope="vm/db", announced=False)]

    assert sum("curl" in line for line in printed(pages.notice_page(unseen, SERVICE))) == 1


def test_announced_events_need_no_such_words() -> None:
    assert printed(pages.notice_page([an_event()], EMULATOR)) == []


def test_a_failed_host_gives_no_notice_to_anybody_so_there_is_none_to_switch_on() -> None:
    failed = an_event(announced=False, start_cause="host_failure")

    assert printed(pages.notice_page([failed], EMULATOR)) == []


def test_a_waiting_event_comes_with_the_next_step() -> None:
    started = an_event(status="Started", not_before=None, started_at=NOON)

    assert printed(pages.next_steps([started, an_event(B)])) == [
        "",
        "To approve it before its NotBefore:  forewarned approve 0000000B",
        "To see what it is waiting for:       forewarned explain 0000000B",
    ]
    assert printed(pages.next_steps([started])) == []


def test_of_several_waiting_events_the_next_step_is_shown_for_the_first() -> None:
    assert printed(pages.next_steps([an_event(A), an_event(B)])) == [
        "",
        "To approve the first before its NotBefore:  forewarned approve 0000000A",
        "To see what the first is waiting for:       forewarned explain 0000000A",
    ]


def test_events_of_one_maintenance_are_said_to_start_together() -> None:
    """I16."""
    parts = [msgspec.structs.replace(an_event(id_), maintenance="one") for id_ in (A, B)]

    assert printed(pages.next_steps(parts))[1] == (
        "They start together, once each of them is approved, or at their NotBefore."
    )
    assert printed(pages.next_steps(parts[:1]))[1].startswith("To approve it before")


def test_a_canceled_event_has_no_time_left() -> None:
    canceled = an_event(status="Canceled", ended_at=NOON - 10 * MINUTE)
    found = an_explanation(
        event=canceled, now=NOON - 5 * MINUTE, why="called off", next_step="none"
    )

    lines = printed(pages.explanation_page(found))

    assert "  NotBefore    2026-01-05 12:00:00 UTC" in lines
    assert "  ended        2026-01-05 11:50:00 UTC (5m ago)" in lines


def test_an_explanation_tells_all_there_is_to_know() -> None:
    found = an_explanation(
        event=an_event(
            approval=Approval(by="vm web", at=NOON - 10 * MINUTE, by_policy=False),
            description="a disk",
        ),
        now=NOON - 5 * MINUTE,
        why="approved by vm web, but something else holds it back",
        waits_for=("approval of Terminate", "or its NotBefore"),
        waits_for_events=(B,),
        next_step="it starts",
        history=(a_row(action="approved", cause=""),),
    )

    assert printed(pages.explanation_page(found)) == [
        "Reboot 0000000A-0000-4000-8000-000000000000 Scheduled",
        "  VMs          web",
        "  scope        vm/web",
        "  source       User",
        "  description  a disk",
        "  duration     unknown",
        "  created      2026-01-05 11:45:00 UTC (10m ago)",
        "  NotBefore    2026-01-05 12:00:00 UTC (in 5m)",
        "  approved     2026-01-05 11:50:00 UTC by vm web",
        "",
        "  why          approved by vm web, but something else holds it back",
        "  waits for    approval of Terminate",
        "               or its NotBefore",
        "               forewarned explain 0000000B-0000-4000-8000-000000000000",
        "  next         it starts",
        "",
        "At (UTC)            What            Event    VMs Who and why",
        "2026-01-05 12:00:00 Reboot approved 0000000A web cli:ada",
    ]


def test_an_explanation_lists_the_events_that_start_together_with_this_one() -> None:
    siblings = (
        a_sibling(B, "vm/report", "report", ready=False),
        a_sibling(C, "avset/db", "db-0", "db-2"),
        a_sibling(D, "vm/cheap", "cheap", status="Started"),
    )
    found = an_explanation(
        event=an_event(type="Freeze"),
        now=NOON - 5 * MINUTE,
        why="approved by ada, but others are not ready",
        siblings=siblings,
        next_step="it starts",
    )

    assert printed(pages.explanation_page(found))[-5:] == [
        "  why          approved by ada, but others are not ready",
        "  siblings     0000000B Freeze of report in vm/report: waits for approval",
        "               0000000C Freeze of db-0, db-2 in avset/db: ready",
        "               0000000D Freeze of cheap in vm/cheap: started",
        "  next         it starts",
    ]


def test_an_explanation_names_ten_of_many_events_and_counts_the_rest() -> None:
    ids = [f"{number:08}-0000-4000-8000-000000000000" for number in range(14)]
    found = an_explanation(
        event=an_event(),
        now=NOON - 5 * MINUTE,
        why="",
        waits_for_events=tuple(ids),
        siblings=tuple(a_sibling(id_, "vm/x", "x") for id_ in ids),
        next_step="it starts",
    )

    lines = printed(pages.explanation_page(found))

    assert sum("forewarned explain" in line for line in lines) == 10
    assert sum("x in vm/x" in line for line in lines) == 10
    assert lines.count("               and 4 more") == 2


def test_where_an_operator_completes_events_a_started_one_says_how() -> None:
    started = an_event(status="Started", started_at=NOON)

    assert printed(pages.completion_page([started, an_event(B)], SERVICE)) == [
        "",
        "If no actuator does the work (see 'forewarned tasks list'), do it, then run:",
        "  forewarned complete 0000000A",
    ]
    assert printed(pages.completion_page([started], EMULATOR)) == []
    assert printed(pages.completion_page([an_event()], SERVICE)) == []


def test_the_fleet_is_grouped_by_scope() -> None:
    fleet = Scopes(
        (
            a_scope("vm/web", a_vm("web"), last_read_at=NOON - 5 * MINUTE, last_read_by="web"),
            a_scope(
                "avset/db",
                a_vm("db-0"),
                active=False,
                maintenance=SetMaintenance(
                    id="M", type=EventType.FREEZE, remaining_update_domains=(1, 2)
                ),
                open_events=1,
            ),
        )
    )

    assert printed(pages.fleet_page(fleet, now=NOON)) == [
        "vm/web  virtual machine, active, read 5m ago by web, incarnation 4",
        "VM  Address   Host    UD FD Zone State   Priority",
        "web 127.8.0.1 host-01 0  0       running Regular",
        "",
        "avset/db  virtual machine, inactive: no VM reads its document, incarnation 4, 1",
        "open event, under Freeze maintenance, update domains still to come: 1, 2",
        "VM   Address   Host    UD FD Zone State   Priority",
        "db-0 127.8.0.1 host-01 0  0       running Regular",
        "",
        "2 VMs in 2 scopes",
    ]


def test_an_empty_fleet_says_how_to_fill_it() -> None:
    assert printed(pages.fleet_page(Scopes(()), now=NOON)) == [
        "The fleet is empty. 'forewarned fleet apply FILE' fills it."
    ]


def test_scopes_whose_vms_are_all_gone_are_left_out_once_their_events_are_over() -> None:
    gone, busy = a_scope("vm/gone"), a_scope("vm/busy", open_events=1)

    shown = printed(pages.fleet_page(Scopes((a_scope("vm/web", a_vm()), gone, busy)), now=NOON))
    empty = printed(pages.fleet_page(Scopes((gone,)), now=NOON))

    assert not any("vm/gone" in line for line in shown)
    assert any("vm/busy" in line for line in shown)
    assert shown[-1] == "1 VM in 2 scopes"
    assert empty == ["The fleet is empty. 'forewarned fleet apply FILE' fills it."]


def test_what_was_applied_is_counted_and_named() -> None:
    applied = FleetApplied(tuple(f"vm{n}" for n in range(22)), (), ("old",), 1200)

    lines = printed(pages.applied_page(applied))

    assert lines[0].startswith("added     22: vm0, vm1,")
    assert "vm19 and 2 more" in " ".join(lines)
    assert lines[-3:] == ["changed   0", "removed   1: old", "unchanged 1,200"]


def test_the_clock_tells_its_pace() -> None:
    assert pages.clock_line(Clock(NOON, 1, "real")) == "2026-01-05 12:00:00 UTC, real time"
    assert pages.clock_line(Clock(NOON, 0, "paused")) == "2026-01-05 12:00:00 UTC, paused"
    assert pages.clock_line(Clock(NOON, 60, "running")).endswith("running at 60x")
