-- A subscription whose target fails, or has asked for time, rests.
ALTER TABLE subscriptions ADD COLUMN rests INTEGER NOT NULL DEFAULT 0; -- since the last delivery
ALTER TABLE subscriptions ADD COLUMN rests_until INTEGER; -- of a real clock; it may be past
-- Messages that were removed because they were too old.
ALTER TABLE subscriptions ADD COLUMN removed INTEGER NOT NULL DEFAULT 0;
