"""What the listener has done, as plain numbers: counted here, added up elsewhere."""

from collections import Counter


class Counts:
    """Since they were last taken."""

    __slots__ = ("approvals", "documents", "refusals", "unmodified", "waits")

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.documents = 0
        """Polls answered with a document."""
        self.unmodified = 0
        """Polls answered with 304."""
        self.waits = 0
        """Polls that waited for a change."""
        self.approvals = 0
        """POSTs answered with 200."""
        self.refusals: Counter[str] = Counter()

    def take(self) -> dict[str, int]:
        """What has been counted, by name; the counts start again at zero."""
        taken = {
            "documents": self.documents,
            "unmodified": self.unmodified,
            "waits": self.waits,
            "approvals": self.approvals,
            **{f"refused_{reason}": number for reason, number in self.refusals.items()},
        }
        self._clear()
        return {name: number for name, number in taken.items() if number}
