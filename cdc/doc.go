// Package cdc invalidates what is written past the cache: by a migration, an administrator's UPDATE, another service, a batch job. A feed reads the
// changes from the database, and invalidates the keys and tags that depend on the rows.
//
//	feed, err := postgres.New(postgres.Config{
//		Conn: "postgres://…", Publication: "shop", Slot: "shop_cache",
//		Tables: []cdc.Table{cdc.Rows("public.products", products, func(r cdc.Row) (int64, error) { return r.Int64("id") })},
//		Guards: []*cacheguard.Guard{guard},
//	})
//	...
//	err = feed.Run(ctx) // on every instance
//
// This package has what the feeds share. The feeds are packages of their own: cdc/postgres reads the log of PostgreSQL, cdc/mysql that of MariaDB, and cdc/outbox a
// table that triggers fill, in other databases.
//
// # What is guaranteed
//
// A committed change is invalidated at least once, in the order of the commits, and what is rolled back is not. So old values are served
// for as long as the feed is behind, which is milliseconds while all is well (Stats.Behind). CatchUp returns when everything that was committed before the
// call is invalidated: a Get that begins after it never returns an older value.
//
// # Protocol
//
// One instance reads; the others stand by.
//
//  1. It reads a transaction that has committed, and asks each row's Table.Changed for keys and tags. The names of a transaction go into one
//     batch, each once. Transactions that arrive while a batch is under way share the next one, and a large transaction has several.
//  2. It waits until every new read of the database sees the transactions of the batch. The databases send a commit before that: a load
//     in between would read the old row, and store it after the invalidation.
//  3. It invalidates the batch in all Guards, and repeats that until Redis has acknowledged all of it, and with Config.Replicas the replicas too. If the
//     Config has an Order, it does so for one Kind after the other; else the names of a batch are invalidated together.
//  4. It confirms the position to the database, which forgets the log before it.
//
// The reader may crash, be paused, or lose a reply at any point:
//
//   - It dies in steps 1 to 3, or the connection breaks: the next reader begins at the confirmed position, and invalidates once more
//     what may have been invalidated already. That costs loads, and nothing else.
//   - It dies in step 4, or the confirmation is lost: the same.
//   - It is paused in step 3: the database takes it for dead, and another one reads. When it wakes up, it invalidates its batch again,
//     which does no harm, and cannot confirm it.
//   - Redis does not answer, or has not done all: step 3 goes on. The position stays, and the log is kept, as far as the feed's limit
//     allows. The process is not disturbed, and CatchUp waits.
//   - A reply of Redis is lost: step 3 is repeated.
//   - The database restarts: the reader, or another instance, reads from the confirmed position.
//   - A key cannot be made, because a column or its value is missing or Changed panics: the Kinds of the table are invalidated whole, the log says for which column, and
//     the feed goes on. What is in the log stays as it is, so waiting would not help.
//   - Somebody else reads in its place, a feed of another cache or of other tables: the note about the position, which is in the Redis of each Guard under its Prefix, is behind
//     that position. CatchUp and SelfCheck say so, and whoever takes over invalidates the kinds whole.
//
// Sometimes the log does not say which rows have changed: after a TRUNCATE, or when the position is lost because there is none yet, somebody has
// dropped it, or it was given up. Then the Kinds of the tables are invalidated whole, and the log says why. A new position becomes valid
// only after Redis has acknowledged that, so an instance that dies in between leaves no position, and the next one begins again.
//
// # What is not guaranteed
//
//   - A value may be old until the change has been read. For writes of your own that must be seen at once, call Invalidate, or use Update or Intend,
//     beside the feed: invalidating twice does no harm.
//   - The limits of package cacheguard hold: a loader that reads from a replica of the database that lags behind may load an old row after the invalidation.
//   - The feed does not see what leaves no rows in the log: a view that is refreshed, data that is restored from a backup, a label of an enum that is renamed, what foreign keys
//     cascade in MariaDB. Call InvalidateAll then.
//   - If a new version of a program maps more tables, an old version that still reads does not invalidate for them. The new one invalidates their Kinds whole when it takes over.
package cdc
