"""Rows of the store, written without it."""

from tests.postgresql.databases import Database

NEW_SCOPE = """
    INSERT INTO scopes (id, folded, kind, revision, incarnation, active, policy)
    VALUES (%(id)s, %(id)s, 'vm', 1, 7, 1, '{}')
"""
NEW_EVENT = """
    INSERT INTO events (id, scope_id, type, status, source, resources, created_at, not_before,
                        description, announced, end_reason, ended_at)
    VALUES (%s, %s, 'Reboot', 'Scheduled', 'User', '["vm1"]', 0, 60000000, '', 1, '', %s)
"""
BIND = """
    INSERT INTO resources (folded, name, scope_id, position, update_domain, fault_domain, host,
                           state, priority, eviction_policy, address, profile)
    VALUES (%(name)s, %(name)s, %(scope)s, 0, 0, 0, '', '', '', '', %(address)s, '{}')
"""


def add_scope(database: Database, scope_id: str) -> None:
    database.ask(NEW_SCOPE.replace("%(id)s", "%s"), scope_id, scope_id)
