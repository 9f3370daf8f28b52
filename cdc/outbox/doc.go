// Package outbox is the feed of package cdc for databases whose log cannot be read, through any driver of database/sql: triggers write the
// changes of rows into a table, the outbox, and the feed reads that.
//
//	for _, statement := range outbox.Triggers(outbox.SQLite, "products", "id") { … } // once, in a migration
//
//	feed, err := outbox.New(db, outbox.Config{
//		Dialect: outbox.SQLite,
//		Tables:  []cdc.Table{cdc.Rows("products", products, func(r cdc.Row) (int64, error) { return r.Int64("id") })},
//		Guards:  []*cacheguard.Guard{guard},
//	})
//	err = feed.Run(ctx) // on every instance
//
// # Protocol
//
// A trigger fails no write that would succeed without it, as long as the outbox is there. On PostgreSQL its function has the rights of whoever made it, and finds the outbox by its schema; what cannot be
// noted, as a column was renamed, is noted as a TRUNCATE, and so it is on MySQL.
//
//  1. A write fires a trigger, which adds a row to the outbox, in the same transaction: with the columns that were named, before the change and after it. If
//     the transaction is rolled back, so is that row.
//  2. Each instance looks into the outbox every Poll. It reads up to 1,000 rows in the order of their ids. On PostgreSQL and MySQL it
//     locks them, and skips what another instance has locked (FOR UPDATE SKIP LOCKED). On SQLite two instances may read the same rows.
//  3. It invalidates the keys and tags of the rows, in one batch.
//  4. When Redis has acknowledged all of it, it deletes these rows, by their ids, and commits. Otherwise it lets go of them, and tries again.
//
// If an instance crashes or loses a reply before step 4 has committed, the rows stay, and some instance invalidates once more. Rows that become
// visible out of the order of their ids are not missed, as nobody remembers a position. Reads that begin after a row was seen see the
// change that it is about.
//
// Instances read only the rows of tables that they map. So a new version of a program may map more tables while the old one runs.
//
// If the outbox has more than MaxRows of the mapped tables, one row takes their place that stands for everything: the kinds are
// invalidated whole. That needs no Redis, so an outage does not fill the database.
//
// Each instance says every five seconds, by a row of the outbox for each mapped table, for which cache it reads, and what the database has of the table: its columns, partitions and triggers. The cache has a
// name in its Redis (PREFIX:cdc:{outbox}). If the table is another one than the cache's feeds have said last, or another cache's feed has taken rows, the Kinds of the table are invalidated whole. CatchUp
// waits until an instance has looked at the tables as they are.
//
// # What triggers do not see
//
//   - MySQL: what foreign keys cascade. TRUNCATE, and EXCHANGE PARTITION, are seen as another file of the table, at the next look, if it is of engine InnoDB and the feed's user has the right
//     PROCESS. Tables that change otherwise, of engine MEMORY, or below a MERGE table, are a trouble, and invalidated whole at each look. SQLite: a row that INSERT OR REPLACE removes, unless recursive_triggers is on.
//   - PostgreSQL: TRUNCATE of a partition, and rows of a child, that were added after the triggers were made; SelfCheck names them. Tables
//     whose triggers are disabled; but session_replication_role = replica does not disable them.
//   - A table that takes the place of another, as SQLite's rebuild of a table does, until it has triggers again, and ALTER TABLE. Each instance looks every five seconds, and invalidates its
//     Kinds whole at each look while triggers are missing, and once if something is different. On MySQL and MariaDB, what is undone between two looks is not seen.
//   - Writes after the outbox was dropped fail: drop the triggers first.
//   - Values that the triggers' JSON does not have as a query returns them: PostgreSQL's and MySQL's bytes, times and floating-point numbers, and char(n). They are refused: a row whose keys are made of
//     them invalidates the Kinds of its table whole, and SelfCheck names the column. SQLite has bytes; its numbers with a fraction are read as their text,
//     but for those that drivers write in another way, such as 10.0 and 1e20 (REAL): they are refused.
package outbox
