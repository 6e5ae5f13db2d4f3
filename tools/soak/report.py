"""What is told of a soak: a line for each sample, a table at the end, and JSON for programs."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from tools.soak.judge import LIMITS, MB, Limit, Verdict
from tools.soak.run import Report


def line(sample: Mapping[str, float]) -> str:
    """Of one sample: enough to see that it goes on."""
    memory = [value for name, value in sample.items() if name.startswith("memory/")]
    tables = [value for name, value in sample.items() if name.startswith("table/")]
    return (
        f"{sample['minutes']:5.1f} min  {sample['rate/poll']:4.0f} polls/s"
        f" (p99 {sample['p99/poll']:.0f} ms)  {sample['rate/approve']:.1f} approvals/s"
        f" (p99 {sample['p99/approve']:.0f} ms)  {sum(memory) / MB:.0f} MB"
        f"  {sum(tables) / MB:.1f} MB of tables  {sample['wal/on disk'] / MB:.0f} MB of WAL"
        f"  {sample['rows/history']:.0f} rows of history  {sample['rows/events']:.0f} events"
        f"  {sample['queue/pending deliveries']:.0f} pending"
        f"  {sample['done/nothing']:.0f} failed"
    )


def table(report: Report) -> str:
    """As docs/soak.md has it: of each kind, the series that has grown most."""
    rows = ["| What | Series | Grew most | First quarter | Last quarter | Highest | Allowed |"]
    rows.append("| --- | ---: | --- | ---: | ---: | ---: | --- |")
    for kind, limit in LIMITS.items():
        found = [each for each in report.verdicts if each.kind == kind]
        if found:
            rows.append(_row(kind, limit, found))
    return "\n".join(rows)


def summary(report: Report) -> Iterator[str]:
    done, plan = report.tally.done, report.plan
    yield (
        f"{plan.minutes:g} minutes, {plan.vms:,} VMs, retention {plan.retention}:"
        f" {done['poll']:,} polls, {done['wait']:,} long polls, {done['schedule']:,} events,"
        f" {done['approve']:,} approvals, {done['cancel']:,} cancelations,"
        f" {done['complete']:,} completions by operators, {done['carry out']:,} by the actuator,"
        f" {report.messages:,} messages ({report.refused:,} refused, {report.repeated:,} sent"
        f" again), {done['changes']:,} turns of a reader of changes"
    )
    not_done = report.tally.failed.total()
    yield f"{not_done:,} of {done.total() + not_done:,} requests were refused or failed"
    yield from (f"  {number:,} × {why}" for why, number in report.tally.failed.most_common())
    if report.log:
        yield f"nodes have logged {len(report.log):,} lines of warnings; the last: {report.log[-1]}"
    if not report.verdicts:
        yield "too few samples to judge whether anything grows"


def as_json(report: Report) -> Mapping[str, object]:
    return {
        "plan": asdict(report.plan),
        "done": report.tally.done,
        "failed": report.tally.failed,
        "messages": report.messages,
        "refused": report.refused,
        "repeated": report.repeated,
        "verdicts": [asdict(each) for each in report.verdicts],
        "faults": report.faults,
        "log": report.log,
        "samples": report.taken,
    }


def _row(kind: str, limit: Limit, found: list[Verdict]) -> str:
    worst = max(found, key=lambda each: (bool(each.fault), _excess(each, limit)))
    name = worst.series.partition("/")[2]
    values = (_shown(value, limit) for value in (worst.first, worst.last, worst.highest))
    return f"| {kind} | {len(found)} | {name} | {' | '.join(values)} | {_allowed(limit)} |"


def _excess(found: Verdict, limit: Limit) -> float:
    """Of what it was allowed to grow, how much it did."""
    return (found.last - found.first) / (limit.allowed(found.first) or 1)


def _shown(value: float, limit: Limit) -> str:
    return f"{value / MB:,.1f} MB" if limit.unit == "MB" else f"{value:,.5g}"


def _allowed(limit: Limit) -> str:
    if limit.least is not None:
        return f"at least {limit.least:g}"
    if limit.most is not None:
        return f"at most {_shown(limit.most, limit)}"
    words = [f"{limit.share:.0%}"] if limit.share else []
    return " or ".join([*words, f"{_shown(limit.room, limit)}"])
