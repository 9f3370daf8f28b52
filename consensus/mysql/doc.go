// Package mysql is an exclusive lock on MySQL (5.7 or later) or MariaDB (10.2 or later), for those who run one and want locks that
// outlive its restart.
//
//	err := mysql.CreateTable(ctx, db)
//	locks, err := mysql.New(db, mysql.Config{Prefix: "lock", TTL: 10 * time.Second})
//	...
//	err = locks.Do(ctx, "invoice:7", func(ctx context.Context, l *mysql.Lease) error {
//		return send(ctx, 7, l.Fence())
//	})
//
// # Protocol
//
// Each name has a row in the table cacheguard_locks, and a lock of GET_LOCK. That is named by a hash of the database and the name,
// because names of GET_LOCK are short, ignore case and belong to the whole server. Callers of a process queue in the process; the
// first of them waits for GET_LOCK, on a connection of its own. GET_LOCK is only the queue: the server frees it when the connection
// breaks, while the holder may not have noticed. The lock is taken by an UPDATE of the row, which raises the fence and notes the TTL
// as lease_ms. Unlock sets lease_ms to 0, and releases the named lock.
//
// A process that has the named lock and finds another's lease_ms in the row knows that the last holder has not unlocked. It
// waits for that long before it takes the lock; the row notes when the wait began (free_at). The holder asks its connection
// every third of TTL whether it still has the named lock, and trusts the lock for TTL from then. So its context has ended
// when another caller takes the lock: after a crash of the server, a connection that was cut on either side, or a KILL.
//
// Anyone may crash, be paused, be cancelled or lose a reply at any point:
//
//   - A caller that waits in the process, and gives up: nothing has been sent.
//   - A caller that waits in the database, and gives up: KILL QUERY ends the statement, from another connection, and the
//     connection is used again once that is answered. If that takes longer than Timeout, or the lock was granted at that moment, it is closed.
//   - A waiter that dies: the server notices when it looks at the connection, or when it grants the lock and cannot deliver
//     the answer, or else when the session has said nothing for TTL (wait_timeout).
//   - A reply to the UPDATE that is lost: the connection is closed, and the row says that somebody has the lock, for TTL.
//   - A holder that dies or is cut off: the next one takes the lock TTL after the server has noticed. It notices a closed socket at
//     once, and a vanished machine, a frozen process or a silent network when the session has said nothing for TTL. So the
//     lock is free after one TTL, or two.
//   - A holder that is paused finds its context ended when it wakes up.
//   - A reply to Unlock that is lost: Unlock says so. The lock is free when the server notices that the connection is closed.
//   - The server crashes or restarts: the holder notices within a third of TTL. Locks that were not given up are free TTL after
//     somebody asks for them.
//
// # What is not guaranteed
//
//   - A failover to a replica that has not received the last transactions forgets who has the lock, and its fence: use
//     semi-synchronous replication. The same goes for innodb_flush_log_at_trx_commit other than 1 when the machine fails.
//   - GET_LOCK is one server's: all processes must use the same one. Clusters with several writers (Galera, group replication) are
//     not for this.
//   - The order is the server's: MySQL promises none. Both grant in the order of asking, as far as tests see.
//   - max_statement_time (MariaDB) and max_execution_time (MySQL) end waits with an error if they are set for the connection.
//   - MySQL does not see a deadlock among locks that callers take one by one, as each has its own connection.
//   - The database's clock, if it is set forward in the TTL after a crash of a holder: calls that begin to wait after the leap do not wait. Those
//     that have begun before count by their own clocks.
package mysql
