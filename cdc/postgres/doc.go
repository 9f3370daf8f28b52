// Package postgres is the feed of package cdc for PostgreSQL (13 or later): it reads the log by logical replication, with the plugin pgoutput that
// PostgreSQL has built in.
//
// The server needs wal_level = logical, the role the attribute REPLICATION, and an administrator creates a publication of the mapped
// tables. SelfCheck names what is missing, with the statement that mends it:
//
//	ALTER SYSTEM SET wal_level = 'logical';      -- and restart
//	ALTER ROLE shop REPLICATION;
//	CREATE PUBLICATION shop FOR TABLE products;
//
// # Which values a row has
//
// The new row has all columns, except long values (TOAST) that have not changed. The old row has the columns of the table's REPLICA IDENTITY: by default those of
// the primary key. If Changed or Rows asks for another one, the Kinds of the table are invalidated whole by each such change; SelfCheck returns an error that matches
// cdc.ErrNotLogged before. After ALTER TABLE … REPLICA IDENTITY FULL, old rows are complete, and the log of updates and deletes is larger.
//
// A domain has the values of its base. Types whose text depends on the session that asks have none (money, regclass, a timestamptz in a range): the catalogue is asked for each type
// that PostgreSQL does not have built in.
//
// # The slot
//
// PostgreSQL keeps its log from the position that the feed has confirmed to a replication slot. A slot admits one reader, so one instance reads. The others
// look once a second whether the slot is free. That is so at once when the reader's process dies, and after 5 seconds of silence
// (wal_sender_timeout) when it is frozen or cut off.
//
// A slot that nobody reads fills the disk. The feed warns when the slot holds back half of Config.MaxRetained, and drops it at the whole: after an outage
// of Redis that takes too long, for example. The kinds are invalidated whole then. No feed runs, nobody looks: set max_slot_wal_keep_size,
// too, and the server gives the slot up by itself; or use Config.Temporary. When you no longer need the feed, drop the slot:
// SELECT pg_drop_replication_slot('shop_cache').
//
// The feed makes the slot itself, in this order, on one connection: an advisory lock, a temporary slot, a wait until the transactions that run have
// ended, the invalidation of everything, a copy of the slot under its name. A process that dies in between leaves nothing. Like every
// creation of a logical slot it waits for transactions that are under way.
//
// If the publication changes, or a mapped table is dropped and created again, changes may be left out of the log without a sign. The reader compares what the catalogue has of the
// tree of each mapped table, which are its partitions and children at any depth, and of all that publishes them: once a second, and whenever CatchUp asks (by a message in the log, from PostgreSQL 14 on).
// Then it gives the slot up, and begins again. A partition or child that comes or goes, a name or a column that is another one has the Kinds of its table invalidated whole: the log has no rows of
// ALTER COLUMN … TYPE … USING, of columns that swap names, or of a table that leaves the log and returns (SET UNLOGGED).
//
// The slot does not say whose cache was invalidated before its position. So the position is noted in the Redis of each Guard (PREFIX:cdc:{SLOT}) before PostgreSQL is told: with the server, its
// timeline, the database, the publication, the tables, and a sum of what the catalogue had of each. A slot that is beyond the note was read by somebody else, or another server was promoted; a note that is
// beyond the end of the log says that a backup was put back; and another sum says that something has changed while no instance ran. All kinds are invalidated whole then, or those of a table whose shape it was.
//
// Rows that were written before their table was published are not in the log, even if their transaction commits later. So when a new version maps a table, its Kinds are invalidated whole once more
// when the transactions have ended that ran then.
//
// PostgreSQL keeps its log from the oldest open transaction on, too, though the feed is not behind (Stats.HeldBy). MaxRetained counts all of it. No slot can be made before that transaction
// ends, so the kinds are invalidated whole at each attempt, which takes ten seconds.
//
// # Each instance
//
// keeps one connection while it stands by, and two while it reads. CatchUp takes another one.
package postgres
