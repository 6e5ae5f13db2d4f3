"""Mutants of nodes that share a store."""

from typing import Final

from tools.mutants.mutant import Mutant

NODES: Final = (
    Mutant(
        name="old-news-are-news",
        file="metadata/http/barrier.py",
        old="return arrived < self._began",
        new="return arrived < self._heard_at",
        breaks="I7: a VM is shown a look at the store that began before the VM asked",
        tests=("tests/metadata/http/test_barrier.py",),
    ),
    Mutant(
        name="parked-too-short",
        file="metadata/http/waiting.py",
        old="item[1].arrived < instant",
        new="item[1].arrived <= instant",
        breaks="I24: a first poll is given up where the next look would have answered it",
        tests=("tests/metadata/http/test_barrier.py",),
    ),
    Mutant(
        name="never-forgotten",
        file="metadata/http/barrier.py",
        old="set(), self._lately if since < REMEMBERED else set()",
        new="self._lately, self._before",
        breaks="I7: a VM that was served long ago, and elsewhere since, does not wait",
        tests=("tests/metadata/http/test_barrier.py",),
    ),
    Mutant(
        name="known-for-ever",
        file="metadata/http/barrier.py",
        old="            self._follower()\n",
        new="",
        breaks="I7: a VM that was served long ago on a kept connection does not wait",
        tests=("tests/metadata/http/test_barrier.py",),
    ),
    Mutant(
        name="stale-for-everyone",
        file="metadata/node_answers.py",
        old="return UNAVAILABLE if self._barrier.is_stale else NOT_YET",
        new="return NOT_YET",
        breaks="I24: a newcomer at a node without its store waits instead of going elsewhere",
        tests=("tests/metadata/http/test_barrier.py",),
    ),
    Mutant(
        name="approved-while-stale",
        file="metadata/node_answers.py",
        old="isinstance(request.operation, Approve) and self._barrier.is_stale",
        new="False",
        breaks="I24: a node without its store takes approvals",
        tests=("tests/metadata/http/test_barrier.py",),
    ),
    Mutant(
        name="fresh-before-whole",
        file="feed/board_mirror.py",
        old="if self.is_whole:",
        new="if True:",
        breaks="I7: half a snapshot is shown to VMs that wait for news",
        tests=("tests/feed/test_board_mirror.py",),
    ),
    Mutant(
        name="late-commits-lost",
        file="storage/postgres/look.py",
        old="changed = ANY(ARRAY(SELECT pg_snapshot_xip(:last::pg_snapshot)))",
        new="false",
        breaks="I25: what a transaction commits after a later one is never heard of",
        tests=("tests/storage/postgres/test_look.py",),
    ),
    Mutant(
        name="identity-asked-apart",
        file="storage/postgres/look.py",
        old=(
            "    [[found], [store]] = _ask("
            'connection, [(_STORE, {"node": node}), (history.IDENTITY, ())])\n'
        ),
        new=(
            "    [store] = PostgresDatabase(connection).ask(history.IDENTITY)\n"
            '    [[found]] = _ask(connection, [(_STORE, {"node": node})])\n'
        ),
        breaks="I25: positions in history name another run of the server than the one they are of",
        tests=("tests/storage/postgres/test_look.py",),
    ),
    Mutant(
        name="number-given-out-again-is-believed",
        file="storage/postgres/commits/outcome.py",
        old="(timeline, epoch, run) == (mark.timeline, mark.epoch, mark.run)",
        new="(timeline, epoch) == (mark.timeline, mark.epoch)",
        breaks="I14: a change that a crash lost is confirmed, if another one has got its number",
        tests=("tests/storage/postgres/test_crashes.py",),
    ),
    Mutant(
        name="looks-compared-across-a-crash",
        file="storage/postgres/follower.py",
        old=" and point.run == last.run",
        new="",
        breaks="I25: a change whose number was in use before a crash is never heard of",
        tests=("tests/storage/postgres/test_crashes.py",),
    ),
    Mutant(
        name="same-incarnations-after-a-failover",
        file="storage/postgres/epoch.py",
        old="offset = next_offset(highest, now=at)",
        new="offset = before",
        breaks="I7: documents that a failover lost come back under numbers that VMs have seen",
        tests=("tests/storage/postgres/test_epoch.py",),
    ),
)
