-- A subscription whose target fails, or has asked for time, rests at every node.
ALTER TABLE subscriptions ADD COLUMN rests bigint NOT NULL DEFAULT 0; -- since the last delivery
ALTER TABLE subscriptions ADD COLUMN rests_until bigint; -- of a real clock; it may be past
-- Messages that were removed because they were too old.
ALTER TABLE subscriptions ADD COLUMN removed bigint NOT NULL DEFAULT 0;
