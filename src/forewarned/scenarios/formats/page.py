"""An examination as one page that needs nothing else: no server, no script, no other file."""

from itertools import groupby
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from forewarned.scenarios.examination import Outcome
from forewarned.scenarios.formats.narrative import leading_to, lines, seconds
from forewarned.scenarios.formats.timeline import timeline

_PACKAGE: Final = "forewarned.scenarios.formats"


def page(outcome: Outcome, *, version: str) -> str:
    templates = Environment(
        loader=PackageLoader(_PACKAGE, package_path="."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["seconds"] = seconds
    by_grade = groupby(outcome.reports, key=lambda each: each.scenario.grade)
    return templates.get_template("page.html").render(
        outcome=outcome,
        grades=[(grade, list(group)) for grade, group in by_grade],
        at=f"{outcome.began_at:%Y-%m-%d %H:%M} UTC",
        version=version,
        timeline=timeline,
        lines=lines,
        leading_to=leading_to,
    )
