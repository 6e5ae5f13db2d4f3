"""P10: what publishing adds to the processor time of an approval, beside a server without it.

The subscription takes none of the messages: they are written, and looked at, but not delivered.
"""

from base64 import b64encode
from collections.abc import Collection, Iterator

from benchmarks import exchange, product, volley
from benchmarks.bench import Bench
from benchmarks.figures import Line, Spread, at_most, measured, ratios
from benchmarks.polling import Subject
from benchmarks.rows import approvals

_SECRET = f"whsec_{b64encode(bytes(32)).decode()}"
_SUBSCRIPTION = f"""
[[subscriptions]]
name = "nobody"
target = {{ kind = "webhook", url = "http://127.0.0.1:9/", secrets = ["{_SECRET}"] }}
filter = {{ vms = ["none"] }}
"""

_TURNS = 3
"""In a round. What else the machine does lasts seconds: many short turns give more ratios that it
has not touched, or has touched on both sides."""


def measure(bench: Bench, _: Collection[str]) -> Iterator[Line]:
    each = bench.scaled(1_250)
    names = [f"many-{number}" for number in range(each * (_TURNS * bench.rounds + 1))]
    settings = bench.scratch / "publishing.toml"
    settings.write_text(_SUBSCRIPTION)
    fleet = product.fleet_of(len(names), kind="alone")
    costs: dict[str, list[float]] = {"off": [], "on": []}
    bench.say(f"P10: {len(names)} events to approve, with and without a subscription")
    with (
        bench.serving("publishing-off", fleet) as without,
        bench.serving("publishing-on", fleet, f"--config={settings}") as publishing,
    ):
        servers = {"off": without, "on": publishing}
        requests = {}
        for what, server in servers.items():
            volley.fire(server.metadata, [exchange.poll_as(name) for name in names])
            requests[what] = approvals.requests_of(server, names)
        subjects = {
            what: Subject(what, server.pids, server.metadata) for what, server in servers.items()
        }
        for number, at in enumerate(range(0, len(names), each)):
            # The order changes from turn to turn, so that neither has the quiet moments.
            for what in ("off", "on") if number % 2 else ("on", "off"):
                cost, _rate = approvals.approve(subjects[what], requests[what][at : at + each])
                if number:
                    costs[what].append(cost)
    yield measured(
        "P10",
        "processor time of an approval with publishing on, against the same without",
        ratios(costs["on"], costs["off"]),
        unit="×",
        goal=at_most(1.1),
        note=f"{Spread.of(costs['on']).median:.0f} µs and {Spread.of(costs['off']).median:.0f} µs;"
        " the delivery itself is not part of it",
    )
