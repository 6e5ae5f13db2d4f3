"""P8: ten thousand events whose time comes at one instant."""

import time
from collections.abc import Collection, Iterator

from benchmarks import crowd, exchange, product, usage, volley
from benchmarks.bench import Bench, many
from benchmarks.crowd import Crowd
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured
from benchmarks.product import Product

HOPELESS = 15.0


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    names = [f"many-{number}" for number in range(bench.scaled(10_000))]
    bench.say(f"P8: {len(names)} events due at once")
    fleet = product.fleet_of(len(names), kind="alone")
    seen: list[float] = []
    stepped: list[float] = []
    with bench.serving("due", fleet, "--clock", "paused") as server:
        volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
        for _number in range(bench.rounds + 1):
            events = server.schedule(names, notice="15m")
            assert len({event["not_before"] for event in events}) == 1
            # Gathered anew: a connection that is silent for long is closed.
            with crowd.gathered(
                bench.scratch / "due-crowd",
                server.metadata,
                product.addresses(len(names)),
                prefix=bench.cores.loading,
            ) as vms:
                step, visible = _come(server, vms, names)
            stepped.append(step)
            seen.append(visible)
            # A server this slow has missed the goal, and another round would tell nothing new.
            if visible > HOPELESS:
                break
            # Long enough that all are over, and the next round starts from nothing.
            server.call("POST", "/v1/clock/step", {"by": "30m"})
    if len(seen) > 1:
        del seen[0], stepped[0]  # the round that warms up
    yield measured(
        "P8",
        f"{many(len(names), 'events')} due at one instant → the last Started and visible",
        Spread.of(seen),
        unit="s",
        goal=at_most(1),
        note="as seen by VMs in their long polls; the step, which also records the impact of each,"
        f" was answered after {Spread.of(stepped).median:.2f} s",
    )


def _come(server: Product, vms: Crowd, names: list[str]) -> tuple[float, float]:
    """Seconds until the step was answered, and until every VM has read that its event started."""
    # All scopes have had the same life, so all documents have the same incarnation.
    now = exchange.ask(server.metadata, exchange.poll_as(names[0]))
    vms.begin_waiting(product.incarnation(now.body))
    vms.hear()
    usage.wait_until_quiet(server.pids)
    began = time.monotonic()
    server.call("POST", "/v1/clock/step", {"by": "15m1s"})
    stepped = time.monotonic() - began
    heard = vms.hear()
    # The document may have changed otherwise than by a start: nothing but a look tells.
    started = vms.look('"EventStatus":"Started"')["seen"]
    if min(heard["answered"], started) < len(names):
        raise BrokenExchangeError(
            f"of {len(names)} VMs {heard['answered']} heard of a change, and {started} of a start"
        )
    return stepped, max(heard["arrivals"]) - began
