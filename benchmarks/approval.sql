-- What a node sends for one approval that comes alone, in the same two round trips, for pgbench.
-- Ids are found by a number instead of being given, and times are constants. chr(58) is a colon,
-- after which pgbench would look for a variable.
\set n random(1, :vms) - 1
\startpipeline
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT set_config('lock_timeout', '1s', true), set_config('statement_timeout', '5s', true),
       set_config('idle_in_transaction_session_timeout', '2s', true),
       set_config('tcp_user_timeout', '3000', true),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                  WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true);
SELECT number, id, kind, policy, rounds, active, last_read_at,
       revision + (SELECT incarnation_offset FROM store) AS revision,
       incarnation + (SELECT incarnation_offset FROM store) AS incarnation
FROM scopes WHERE id = ANY(ARRAY['vm/many-' || :n::text]) AND number > 0 ORDER BY number FOR UPDATE;
SELECT scope_id, name, host, update_domain, fault_domain, priority, eviction_policy,
       terminate_notice, state
FROM resources WHERE scope_id = ANY(ARRAY['vm/many-' || :n::text]) ORDER BY scope_id, position;
SELECT * FROM events WHERE scope_id = ANY(ARRAY['vm/many-' || :n::text]) AND ended_at IS NULL
ORDER BY scope_id, sequence;
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       pg_current_xact_id()::text, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), oldest_code
FROM store;
\endpipeline
\startpipeline
UPDATE events SET status = new.status, not_before = new.not_before, approved_by = new.approved_by,
       approved_at = new.approved_at, approved_by_policy = new.approved_by_policy,
       started_at = new.started_at, start_cause = new.start_cause
FROM unnest(ARRAY['Started'], ARRAY[NULL::bigint], ARRAY['vm' || chr(58) || 'many-' || :n::text],
            ARRAY[1794890051835854], ARRAY[0], ARRAY[1794890051835854], ARRAY['approved'],
            ARRAY(SELECT id FROM events
                  WHERE scope_id = 'vm/many-' || :n::text AND ended_at IS NULL))
     AS new(status, not_before, approved_by, approved_at, approved_by_policy, started_at,
            start_cause, id)
WHERE events.id = new.id;
INSERT INTO history (at, actor, address, action, scope_id, event_id, event_type, resources, cause)
SELECT 1794890051835854, 'vm' || chr(58) || 'many-' || :n::text, '127.16.0.1', new.action,
       'vm/many-' || :n::text, '4A53A300-6F28-41A4-8EE4-02C76B141326', 'Reboot', '["many-0"]',
       new.cause
FROM unnest(ARRAY['approved', 'started'], ARRAY['', 'approved'])
     WITH ORDINALITY AS new(action, cause, place) ORDER BY place;
UPDATE scopes SET revision = new.revision - (SELECT incarnation_offset FROM store),
       incarnation = new.incarnation - (SELECT incarnation_offset FROM store), active = new.active,
       last_read_at = new.last_read_at, next_wake = new.next_wake, changed = pg_current_xact_id()
FROM unnest(ARRAY[4], ARRAY[3], ARRAY[1], ARRAY[1794890050504427], ARRAY[1794976450504427],
            ARRAY['vm/many-' || :n::text])
     AS new(revision, incarnation, active, last_read_at, next_wake, id)
WHERE scopes.id = new.id;
COMMIT;
\endpipeline
