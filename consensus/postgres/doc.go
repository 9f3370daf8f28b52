// Package postgres is an exclusive lock on PostgreSQL (12 or later), for those who run one and want locks that outlive its
// restart.
//
//	err := postgres.CreateTable(ctx, pool)
//	locks, err := postgres.New(pool, postgres.Config{Prefix: "lock", TTL: 10 * time.Second})
//	...
//	err = locks.Do(ctx, "invoice:7", func(ctx context.Context, l *postgres.Lease) error {
//		return send(ctx, 7, l.Fence())
//	})
//
// # Protocol
//
// Each name has a row in the table cacheguard_locks, and the session-level advisory lock of the table's oid and the row's id:
// two names never share one. Callers of a process queue in the process; the first of them waits for the advisory lock, in the
// database, on a connection of its own. The advisory lock is only the queue: PostgreSQL frees it when the connection
// breaks, while the holder may not have noticed. The lock is taken by an UPDATE of the row, which raises the fence and notes the TTL
// as lease_ms, and commits. Unlock sets lease_ms to 0, commits, and frees the advisory lock, in one request.
//
// A process that has the advisory lock and finds another's lease_ms in the row knows that the last holder has not unlocked. It
// waits for that long before it takes the lock, on the connection, so that it keeps its turn. The row notes when the wait
// began (free_at), so that others need not start over. The holder asks its session for a sign of life every third of TTL, which is that
// it has the advisory lock, and trusts the lock for TTL from then. So its context has ended when another caller takes the lock: after a crash of the
// database, a connection that was cut on either side, or a pg_terminate_backend.
//
// Anyone may crash, be paused, be cancelled or lose a reply at any point:
//
//   - A caller that waits in the process, and gives up: nothing has been sent.
//   - A caller that waits in the database, and gives up: the statement is cancelled, and the connection used again once
//     the database has dealt with the request to cancel. If that takes longer than Timeout, or the lock was granted at that moment,
//     the connection is closed.
//   - A waiter that dies: PostgreSQL notices within a third of TTL (client_connection_check_interval, from version 14, on
//     Linux), or when it grants the lock and cannot deliver the answer, or else when the session has been idle for TTL.
//   - A reply to the UPDATE that is lost: the connection is closed, and the row says that somebody has the lock, for TTL.
//   - A holder that dies or is cut off: the next one takes the lock TTL after the database has noticed. It notices a closed socket
//     at once, and a vanished machine, a frozen process or a silent network when the session has been idle for TTL
//     (idle_session_timeout, from version 14). So the lock is free after one TTL, or two.
//   - A holder that is paused finds its context ended when it wakes up.
//   - A reply to Unlock that is lost: Unlock says so. The lock is free when the database notices that the connection is closed.
//   - The database crashes or restarts: connections break, contexts end at once if the holders hear of it. Locks that were not
//     given up are free TTL after somebody asks for them.
//
// # What is not guaranteed
//
//   - A failover to a replica that has not received the last commits forgets who has the lock, and its fence: use synchronous
//     replication. The same goes for synchronous_commit, which is switched on for the UPDATE if it was off, and for fsync.
//   - Before version 14, a machine that vanishes keeps its advisory locks until TCP keepalive ends its connection: set
//     tcp_keepalives_idle and tcp_user_timeout on the server.
//   - The order is that in which processes began to wait in the database, as PostgreSQL grants advisory locks in the order of
//     asking. Callers of one process take turns with those of others.
//   - A pooler between must keep sessions: PgBouncer in session mode, or none. SelfCheck finds one that does not. Behind it locks are refused, or lost at
//     the next sign of life.
//   - PostgreSQL does not see a deadlock among locks that callers take one by one, as each has its own connection.
//   - A wait is a statement that runs. It holds back vacuum for as long as it takes, and shows in pg_stat_activity.
//   - The database's clock, if it is set forward: PostgreSQL takes that for time that sessions were idle, and may end them. Leases are lost
//     then, and their contexts end at once; waits fail. In the TTL after a crash of a holder, calls that begin to wait after the leap do not
//     wait. Those that have begun before count by their own clocks.
//   - If it is set back: a holder that is frozen, or whose machine has vanished, just after that is noticed later by as much.
package postgres
