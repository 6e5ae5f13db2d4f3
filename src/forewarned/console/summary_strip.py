"""The strip above the timeline: what wants attention, as counts that lead to what they count."""

from typing import NamedTuple

from forewarned.service.attention import Attention
from forewarned.service.records import Summary


class Tile(NamedTuple):
    key: str
    """Its name in the page."""
    number: int
    words: str
    href: str


def tiles(summary: Summary) -> tuple[Tile, ...]:
    unread, hosts = summary.unread_scopes, summary.hosts
    return (
        _of_events(Attention.SOON, summary.soon, "starting within 15 minutes"),
        _of_events(Attention.HELD, summary.held, "approved, but held"),
        _of_events(Attention.OVERDUE, summary.overdue, "overdue"),
        Tile("unread", unread, f"unread scope{_s(unread)}", "/unread"),
        Tile("hosts", hosts, f"host{_s(hosts)} affected", "/hosts?affected=on"),
    )


def _of_events(attention: Attention, number: int, words: str) -> Tile:
    return Tile(attention, number, words, f"/events?status={attention}")


def _s(number: int) -> str:
    return "" if number == 1 else "s"
