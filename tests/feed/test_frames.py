import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.feed.frames import LARGEST, FeedBrokenError, Splitter, frame, in_parts


@given(st.lists(st.binary(max_size=50)), st.lists(st.integers(min_value=0, max_value=400)))
def test_messages_come_out_whole_and_in_order_wherever_the_stream_was_cut(
    payloads: list[bytes], cuts: list[int]
) -> None:
    """I25."""
    stream = b"".join(map(frame, payloads))
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    splitter = Splitter()

    received = [
        payload
        for start, end in itertools.pairwise(places)
        for payload in splitter.take(stream[start:end])
    ]

    assert received == payloads


def test_a_stream_cut_at_every_byte_is_the_same_stream() -> None:
    payloads = [b"", b"one", b"x" * 300]
    splitter = Splitter()

    received = [
        payload
        for byte in b"".join(map(frame, payloads))
        for payload in splitter.take(bytes([byte]))
    ]

    assert received == payloads


def test_a_message_too_long_to_be_one_is_refused_before_it_has_arrived() -> None:
    with pytest.raises(FeedBrokenError, match="longer than"):
        Splitter().take((LARGEST + 1).to_bytes(4, "big"))


def test_nobody_sends_a_message_that_the_other_end_would_refuse() -> None:
    with pytest.raises(FeedBrokenError, match="longer than"):
        frame(bytes(LARGEST + 1))


@given(st.lists(st.integers(min_value=0, max_value=9)), st.integers(min_value=1, max_value=20))
def test_parts_hold_every_item_in_order_and_end_with_the_one_that_makes_them_heavy(
    items: list[int], most: int
) -> None:
    parts = list(in_parts(items, weight=lambda item: item, most=most))

    assert [item for part in parts for item in part] == items
    assert all(parts)
    assert all(sum(part[:-1]) < most for part in parts)
    assert all(sum(part) >= most for part in parts[:-1])
