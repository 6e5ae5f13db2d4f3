"""Ends sessions of nodes that stand still, if the server itself would let them keep their locks.

The server ends a transaction that is idle for two seconds (`connection.LIMITS`). But it does not
count while it takes a session for busy: from a statement until the Sync that follows it, and while
it has rows to send. Nor does it count from a Flush behind the Sync on, which psycopg sends at the
end of each pipeline. A node that is stopped just then holds its scopes for as long as it stands
still (I20).
"""

from typing import Final

from forewarned.storage.postgres.connection import Connection

# Only those that may hold locks: an export that is read slowly is in no one's way. A COPY waits for
# its client by nature, and is no node's; nor is what a person has begun by hand.
_END: Final = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
      AND application_name = current_setting('application_name')
      AND state IN ('active', 'idle in transaction')
      AND wait_event IN ('ClientRead', 'ClientWrite') AND backend_xid IS NOT NULL
      AND greatest(query_start, state_change) < clock_timestamp() - interval '2 seconds'
      AND query NOT ILIKE 'COPY %'
"""


def end_silent_sessions(connection: Connection) -> int:
    """Returns how many. The connection must be in autocommit."""
    return len(connection.execute(_END).fetchall())
