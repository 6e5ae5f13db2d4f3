-- When VMs are removed, their scope's messages in the outbox are told where the VMs were. Thousands
-- may be waiting: without it each removal would read them all in its transaction.
CREATE INDEX outbox_of_scope ON outbox (scope_id); -- and the number, which is the row's id
