-- When VMs are removed, their scope's messages in the outbox are told where the VMs were. Thousands
-- may be waiting: without it each removal would read them all in its transaction.
CREATE INDEX outbox_of_scope ON outbox (scope_id, number); -- as they are asked for, in their order
