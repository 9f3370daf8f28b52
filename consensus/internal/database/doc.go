// Package database makes locks of what databases have: a lock that a session holds and others wait for in the database, and
// a table with a row for each name.
//
// The session's lock is the queue: the database wakes the next in it. It is not the lock, as the database frees it when the
// connection breaks, while the holder may still believe in it. That is what the row is for:
//
//	fence     the last fence
//	lease_ms  the TTL of the holder; 0 when the last holder has given the lock up
//	free_at   when a lock that was not given up is free, in the database's milliseconds; 0 until somebody asks
//
// The session that has the session's lock looks at the row, and takes the lock by raising the fence in the same statement, if lease_ms is
// 0. If not, the last holder's session has ended without an unlock: its process died, the connection broke, the database was restarted.
// Such a holder trusts its lease for TTL after its last request at most. So the first claim that finds the row like this sets free_at to
// TTL from now, and the lock is taken when that time has come. No clock of two machines is compared, and a holder that lives on has ended
// its context by then.
//
// The holder asks its connection for a sign of life every third of TTL. When there is none, the lease is lost at once.
package database
