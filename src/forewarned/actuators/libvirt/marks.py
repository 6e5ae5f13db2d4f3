"""What is kept in a domain's metadata: the task that was marked last. Pure.

libvirt keeps metadata when it is killed, and hands it on with a migration.
"""

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Final

from forewarned.actuators.driver import Power

NAMESPACE: Final = "urn:forewarned:task"
PREFIX: Final = "forewarned"
NOT_RUNNING: Final = -1
"""libvirt's id of a domain that is off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    key: str
    issued: bool
    """Whether its action was issued."""
    power: Power
    """The VM's when the mark was made, before the action. So are the others."""
    host: str
    domain_id: int
    run: str
    """See `Instance.run`."""


NO_MARK: Final = Mark(
    key="", issued=False, power=Power.UNKNOWN, host="", domain_id=NOT_RUNNING, run=""
)


def mark_to_xml(mark: Mark) -> str:
    attributes = {
        "key": mark.key,
        "issued": "yes" if mark.issued else "no",
        "power": mark.power,
        "host": mark.host,
        "id": str(mark.domain_id),
        "run": mark.run,
    }
    return ET.tostring(ET.Element("task", attributes), encoding="unicode")


def mark_from_xml(text: str) -> Mark:
    """What can't be read counts as no mark: only others could have written it."""
    try:
        # libvirt wrote it itself, and writes no entities.
        element = ET.fromstring(text)  # noqa: S314
        power = Power(element.get("power", Power.UNKNOWN))
        domain_id = int(element.get("id", NOT_RUNNING))
    except (ET.ParseError, ValueError):
        return NO_MARK
    return Mark(
        key=element.get("key", ""),
        issued=element.get("issued") == "yes",
        power=power,
        host=element.get("host", ""),
        domain_id=domain_id,
        run=element.get("run", ""),
    )
