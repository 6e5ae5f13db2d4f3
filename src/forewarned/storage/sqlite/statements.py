"""The statements that write scopes, VMs, events and history.

An UPDATE names only the columns that may have changed: SQLite would rewrite every index on the
others, and look for rows that refer to them. So columns that change often are apart from those that
hardly ever do. The values of each statement come from the function of `rows` named beside it.
"""

from typing import Final

# rows.new_scope
ADD_SCOPE: Final = """
    INSERT INTO scopes (folded, kind, policy, rounds, revision, incarnation, active, last_read_at,
                        next_wake, id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# rows.scope_state
MOVE_SCOPE: Final = """
    UPDATE scopes SET revision = ?, incarnation = ?, active = ?, last_read_at = ?, next_wake = ?
    WHERE id = ?
"""
# rows.scope_plan
PLAN_SCOPE: Final = "UPDATE scopes SET kind = ?, policy = ?, rounds = ? WHERE id = ?"

# rows.new_resource
ADD_RESOURCE: Final = """
    INSERT INTO resources (scope_id, name, state, update_domain, fault_domain, host, priority,
                           eviction_policy, terminate_notice, folded, position)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
            (SELECT coalesce(max(position) + 1, 0) FROM resources WHERE scope_id = ?1))
"""
# rows.resource_state
MOVE_RESOURCE: Final = "UPDATE resources SET state = ? WHERE folded = ?"
# rows.resource_model
MODEL_RESOURCE: Final = """
    UPDATE resources SET update_domain = ?, fault_domain = ?, host = ?, priority = ?,
           eviction_policy = ?, terminate_notice = ?
    WHERE folded = ?
"""
LEAVE_SCOPE: Final = """
    INSERT OR IGNORE INTO former_scopes SELECT folded, scope_id FROM resources WHERE folded = ?
"""
REMOVE_RESOURCE: Final = "DELETE FROM resources WHERE folded = ?"
PLACE_RESOURCE: Final = "UPDATE resources SET position = ? WHERE folded = ?"

# rows.new_event
ADD_EVENT: Final = """
    INSERT INTO events (scope_id, type, source, created_at, maintenance, resources, description,
                        duration, announced, ended_at, end_reason, status, not_before, approved_by,
                        approved_at, approved_by_policy, started_at, start_cause, id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# rows.event_state
MOVE_EVENT: Final = """
    UPDATE events SET status = ?, not_before = ?, approved_by = ?, approved_at = ?,
           approved_by_policy = ?, started_at = ?, start_cause = ?
    WHERE id = ?
"""
# rows.event_words
WORD_EVENT: Final = """
    UPDATE events SET resources = ?, description = ?, duration = ?, announced = ? WHERE id = ?
"""
# rows.event_end
END_EVENT: Final = """
    UPDATE events SET ended_at = ?, end_reason = ?, status = ?, not_before = ?, approved_by = ?,
           approved_at = ?, approved_by_policy = ?, started_at = ?, start_cause = ?
    WHERE id = ?
"""

# rows.from_history
ADD_HISTORY: Final = """
    INSERT INTO history (at, actor, address, action, scope_id, event_id, event_type, resources,
                         cause)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
