"""From the writer to the pollers: what is committed, in order; and back: what VMs ask for.

One small protocol over a stream. A poller that has taken a snapshot and every commit since holds
what the store holds. Wherever that is in doubt it drops the connection and takes a new snapshot.
"""
