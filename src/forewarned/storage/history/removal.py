"""How history says that retention has removed rows of it: in a row that is chained as any other.

So who takes out rows and makes that look like retention has to change what is chained.
"""

import re
from datetime import datetime
from typing import Final

REMOVED: Final = "history_removed"
"""The action of such a row. Retention leaves these rows alone."""
_CAUSE: Final = re.compile(r"rows up to number ([0-9]+) of the chain ")


def cause(number: int, *, before: datetime) -> str:
    return f"rows up to number {number} of the chain that are older than {before.isoformat()}"


def number_of(cause: str) -> int:
    """Up to which number of the chain rows may be missing; 0 if the cause does not say."""
    found = _CAUSE.match(cause)
    return 0 if found is None else int(found[1])
