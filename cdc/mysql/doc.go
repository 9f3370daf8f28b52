// Package mysql is the feed of package cdc for MariaDB (10.6 to 11.3; tested on 10.11): it reads the binary log, as a replica does. For later versions, whose log has
// other positions, and for MySQL of Oracle, which cannot be asked up to where its log is visible, use package cdc/outbox; SelfCheck refuses them.
//
// The server needs these settings, and the user these rights. SelfCheck names what is missing:
//
//	log_bin, binlog_format = ROW, binlog_row_image = FULL, binlog_row_metadata = FULL
//	GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO shop
//
// # The position
//
// The position in the log is in Redis, beside the cache: a hash at cacheguard:cdc:{NAME}, with the fence of the lock that admits one reader. The lock is one of
// package mutex, with a TTL of 5 seconds. Then another instance takes over from a reader that has died. A reader begins
// by putting its fence there, so that an earlier one, which has lost the lock, can no longer move the position.
//
// If Redis loses its data, the position is lost with the entries that it is about. A reader without a position takes a snapshot of the database, of which MariaDB
// says where in the log it stands, invalidates the kinds of all Tables whole, and stores that place. The same happens if the server has purged
// the file, or is another one.
//
// Before a batch is invalidated, the feed takes such a snapshot too, and waits until it stands behind the transactions of the batch: MariaDB may send a
// transaction before other connections see it.
//
// That place says whose it is by a note in the Redis of each Guard, under its Prefix (PREFIX:cdc:{NAME}), which is written before it, with the tables.
//
// # Values
//
// The log has the bytes of a UUID, a SET as a number, and texts in their charset. The server is asked for the columns of a mapped table when its rows come for the first time, and again after
// a statement about it. A value of a type or a charset without a conversion is refused, and its row invalidates the Kinds of the table whole. Rows of tables that are not mapped are not
// decoded. If the log cannot be read on three times at the same place, the position is given up.
//
// # What the log does not name
//
// TRUNCATE, and other statements about a mapped table, such as ALTER TABLE, invalidate its Kinds whole. So do rows without the names of their columns
// (binlog_row_metadata), and rows of a MERGE table over it. What a statement writes is not read from its text: each one that is not known to write only what it names, as definitions do, has all
// Kinds invalidated whole. So a session that writes statements instead of rows (binlog_format = STATEMENT or MIXED) does so by each of its writes, and so do XA COMMIT, LOAD DATA, an incident that the
// server notes in its log, and events that nobody knows. Rows that a foreign key's cascade changes are not in the log: name them in the Changed of the parent, or by a tag of it.
//
// A log that was begun anew, as by RESET MASTER, has the names of the old one. So the position has the second when its file was begun, too, and the reader compares once a second whether the log is shorter than
// it was. A server that leaves changes out of its log (log_bin off, binlog_do_db, binlog_ignore_db, a replica without log_slave_updates) is refused, and the position given up. Nobody sees what is written with
// sql_log_bin = 0, or while the log is off and no instance runs: call InvalidateAll.
package mysql
