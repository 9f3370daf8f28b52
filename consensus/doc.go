// Package consensus has what locks outside of Redis have in common: the Locker and the Lease that the packages below it hand
// out. Users import one of those, each of which is a module of its own:
//
//   - consensus/etcd and consensus/zookeeper: a majority of servers agrees on who has the lock. The loss of a minority,
//     the leader included, loses no lock.
//   - consensus/postgres and consensus/mysql: the database that is there anyway.
//
// They behave as package mutex does: Lock, TryLock, Do, Close; a Lease with a context that ends when the lease does, and a fence.
// The errors are mutex's, so errors.Is(err, mutex.ErrNotAcquired) is right for every kind of lock, and so are the hooks.
//
// # Guarantees
//
//   - One holder at a time, as the package's store and its comment say it.
//   - The context of a lease ends no later than the lock can be somebody else's, by the holder's own monotonic clock.
//     Clocks of different machines are not compared.
//   - Fences grow with every acquisition, also over restarts of the store.
//   - A wait that ends, ends without a trace. Waiters are woken one by one, by the store, in the order in which the
//     package says.
//
// And their limits. They cost more than a lock on Redis. A process may be paused between looking at its context and
// writing: only a fence that the protected resource checks holds that off. A store that is restored from a backup has
// forgotten locks and fences.
//
// There are no owners (mutex.WithOwner), no Extend, no Revoke and no MaxHold.
package consensus
