"""Refusals on their way from the writer, which decides, to the poller, which answers for it."""

from collections.abc import Iterator

from forewarned.core.errors import RefusalError
from forewarned.feed.protocol import Refused


def refused(request_id: int, refusal: RefusalError) -> Refused:
    return Refused(request_id, type(refusal).__name__, str(refusal))


def rebuilt(answer: Refused) -> RefusalError:
    """Of the same type and in the same words, which is all that an edge goes by.

    The facts behind the words stay with the writer: no constructor is called for them.
    """
    kind = next(
        (each for each in _kinds(RefusalError) if each.__name__ == answer.kind), RefusalError
    )
    return kind.__new__(kind, answer.message)


def _kinds(kind: type[RefusalError]) -> Iterator[type[RefusalError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)
