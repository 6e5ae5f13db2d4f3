import pytest

from forewarned.cli.tables import (
    PlannedRow,
    event_table,
    history_table,
    plan_table,
    setting_table,
    vm_table,
)
from forewarned.control.v1.wire import Setting
from tests.cli.answers import DAY, MINUTE, NOON, SECOND, A, B, a_row, a_vm, an_approval, an_event
from tests.cli.printing import WIDTH, printed

NOW = NOON - 14 * MINUTE - 59 * SECOND


def test_events_stand_in_a_table_with_the_time_left() -> None:
    events = [
        an_event(A),
        an_event(
            B,
            type="Terminate",
            status="Started",
            not_before=None,
            started_at=NOW - 3 * MINUTE,
            resources=("api_0", "api_1"),
        ),
        an_event("0000000C-0", approval=an_approval(NOW)),
        an_event("0000000D-0", status="Canceled", ended_at=NOW - DAY),
    ]

    assert printed([event_table(events, now=NOW)]) == [
        "Event    Type      Status    NotBefore (UTC)                    VMs",
        "0000000A Reboot    Scheduled 2026-01-05 12:00:00 in 14m59s      web",
        "0000000B Terminate Started                       for 3m         api_0, api_1",
        "0000000C Reboot    Scheduled 2026-01-05 12:00:00 approved, held web",
        "0000000D Reboot    Canceled                      1d ago         web",
    ]


def test_history_says_when_what_to_whom_by_whom_and_why() -> None:
    rows = [
        a_row(),
        a_row(action="resource_added", event_id=None, event_type=None, cause="", actor="boot"),
    ]

    assert printed([history_table(rows)]) == [
        "At (UTC)            What           Event    VMs Who and why",
        "2026-01-05 12:00:00 Reboot started 0000000A web cli:ada: approved",
        "2026-01-05 12:00:00 resource added          web boot",
    ]


def test_history_names_the_vm_that_an_event_lost() -> None:
    row = a_row(action="narrowed", cause="VM web_1 is gone")

    assert printed([history_table([row])]) == [
        "At (UTC)            What                 Event    VMs Who and why",
        "2026-01-05 12:00:00 Reboot has fewer VMs 0000000A web cli:ada: VM web_1 is gone",
    ]


def test_history_shows_what_concerns_no_vm() -> None:
    row = a_row(
        action="turned_away",
        event_id=None,
        event_type=None,
        resources=(),
        actor="stranger",
        cause="no token",
    )

    assert printed([history_table([row])]) == [
        "At (UTC)            What        Event VMs Who and why",
        "2026-01-05 12:00:00 turned away           stranger: no token",
    ]


def test_what_happened_is_never_broken_in_two() -> None:
    row = a_row(
        action="interrupted",
        event_type="Terminate",
        resources=("FrontEnd_IN_0", "FrontEnd_IN_1"),
        cause="VM FrontEnd_IN_0 is gone",
    )

    assert "Terminate impact began" in printed([history_table([row])])[1]


def test_a_vm_is_shown_with_its_place() -> None:
    assert printed([vm_table([a_vm()])]) == [
        "VM  Address   Host    UD FD Zone State   Priority",
        "web 127.8.0.1 host-01 0  0       running Regular",
    ]


def test_a_vm_that_is_known_by_its_port_is_listed_with_its_mark() -> None:
    shown = printed([vm_table([a_vm(port_mark=101), a_vm("db", address="", port_mark=102)])])

    assert "127.8.0.1 port mark 101 " in shown[1]
    assert shown[2].startswith("db  port mark 102 ")


def test_settings_show_where_they_come_from() -> None:
    values = [Setting("clock", "60x", "flag --clock"), Setting("rate", "5", "default")]

    assert printed([setting_table(values)]) == [
        "Setting Value From",
        "clock   60x   flag --clock",
        "rate    5     default",
    ]


def test_a_plan_shows_the_first_and_last_of_many_names() -> None:
    names = tuple(f"api_{number}" for number in range(100))
    row = PlannedRow(
        scope="vmss/api/0", kind="placement_group", vms=100, update_domains=5, names=names
    )

    assert printed([plan_table([row])]) == [
        "Scope      Kind            VMs UDs Names",
        "vmss/api/0 placement group 100 5   api_0, …, api_99",
    ]


@pytest.mark.parametrize(
    "table",
    [
        event_table(
            [an_event(type="Terminate", resources=("x" * 64, "y" * 64))], now=NOON - 9 * DAY
        ),
        history_table([a_row(resources=("x" * 64,), cause="why " * 50, actor="a" * 64)]),
        vm_table(
            [a_vm("x" * 64, host="h" * 64, address="fd00:1111:2222:3333:4444:5555:6666:7777")]
        ),
        setting_table([Setting("fleet", "/" + "x" * 200, "environment FOREWARNED_FLEET")]),
    ],
)
def test_tables_fit_eighty_columns_whatever_is_in_them(table: object) -> None:
    assert max(map(len, printed([table]))) <= WIDTH  # type: ignore[list-item]  # any table


def test_a_name_too_long_for_its_column_goes_on_in_the_next_line() -> None:
    lines = printed([event_table([an_event(resources=("x" * 40,))], now=NOW)])

    assert sum(line.count("x") for line in lines) == 40
