"""P9: ordinary polls while the control plane is busy with large answers."""

import time
from collections.abc import Collection, Iterator

from benchmarks import crowd, exchange, product, usage, volley
from benchmarks.bench import Bench, many
from benchmarks.figures import Line, Spread, at_most, measured, percentile, ratios

A_SECOND = 10


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    count = bench.scaled(10_000)
    names = [f"many-{number}" for number in range(count)]
    seconds = max(2.0, bench.seconds)
    calm, busy, listings = [], [], []
    with bench.serving("calm", product.fleet_of(count, kind="alone")) as server:
        volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
        server.schedule(names)
        bench.say(f"P9: polls while {count} events are listed {A_SECOND} times a second")
        with crowd.gathered(
            bench.scratch / "calm-crowd",
            server.metadata,
            product.addresses(bench.scaled(1_000)),
            prefix=bench.cores.loading,
        ) as vms:
            for number in range(bench.rounds + 1):
                quiet = percentile(vms.poll(seconds)["latencies"], 90)
                vms.begin_polling(seconds)
                listed = _list(server.control, seconds)
                loud = percentile(vms.hear()["latencies"], 90)
                if number:
                    calm.append(quiet)
                    busy.append(loud)
                    listings.append(listed / seconds)
    yield measured(
        "P9",
        f"p90 of a poll while {many(count, 'events')} are listed up to {A_SECOND}/s ÷ while not",
        ratios(busy, calm),
        unit="×",
        goal=at_most(3),
        note=f"{Spread.of(busy).median * 1e3:.2f} ms against {Spread.of(calm).median * 1e3:.2f} ms;"
        f" {Spread.of(listings).median:.1f} lists/s were answered",
    )


def _list(port: int, seconds: float) -> int:
    """Ask ten times a second, or as often as the answers come. How often was it?"""
    request = b"GET /v1/events?limit=10000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    room = bytearray(1 << 20)
    asked, began = 0, time.monotonic()
    with exchange.connect(port) as control:
        while (now := time.monotonic() - began) < seconds:
            if now < asked / A_SECOND:
                usage.wait(asked / A_SECOND - now)
                continue
            control.sendall(request)
            size = control.recv_into(room)
            head, _, body = bytes(room[:size]).partition(b"\r\n\r\n")
            left = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]) - len(body)
            # Discarded unread: reading them here would use the pollers' core.
            while left > 0:
                left -= control.recv_into(room)
            asked += 1
    return asked
