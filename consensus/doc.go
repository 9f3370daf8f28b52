// Package consensus is the common part of locks outside of Redis: the Locker and the Lease that the packages below it hand
// out. Users import one of those; each is a module of its own:
//
//   - consensus/etcd and consensus/zookeeper: a majority of servers agrees on who has the lock. The loss of a minority,
//     the leader included, loses no lock.
//   - consensus/postgres and consensus/mysql: the lock is in the database that you already have.
//
// They behave as package mutex does: Lock, TryLock, Do, Close; a Lease with a context that ends when the lease does, and a fence.
// The errors are mutex's, so errors.Is(err, mutex.ErrNotAcquired) works for every kind of lock, and so do mutex's hooks.
//
// # Guarantees
//
//   - One holder at a time, within the limits that the package's comment names for its store.
//   - The context of a lease ends no later than anybody else can have the lock, by the holder's own monotonic clock. Clocks
//     of different machines are not compared.
//   - Fences grow with every acquisition, also across restarts of the store.
//   - A wait that ends leaves nothing behind. The store wakes waiters one by one, in the order that the package's
//     comment names.
//
// These have limits. The locks cost more than a lock on Redis. A process may be paused between checking its context
// and writing: only a fence that the protected resource checks stops that. A store that is restored from a backup has
// forgotten locks and fences.
//
// There are no owners (mutex.WithOwner), no Extend, no Revoke and no MaxHold.
package consensus
