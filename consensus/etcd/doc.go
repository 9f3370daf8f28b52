// Package etcd is an exclusive lock on etcd (3.4 or later): a majority of its members agrees on who has the lock, so the loss
// of a minority loses none.
//
//	locks, err := etcd.New(client, etcd.Config{Prefix: "lock", TTL: 10 * time.Second})
//	...
//	err = locks.Do(ctx, "invoice:7", func(ctx context.Context, l *etcd.Lease) error {
//		return send(ctx, 7, l.Fence())
//	})
//
// # Protocol
//
// A Locker has one lease in etcd, its session, which it keeps alive every third of TTL while it lives. Each caller puts its own key
// under the lock's, Prefix:name/, with that lease. The keys' create revisions are the order of the queue. The first has the lock; each
// other caller watches the key before its own, and looks again when that is gone: one is woken, not all. The fence is the key's create
// revision, which grows with every change in etcd. Unlock deletes the key. TryLock puts a key only where none is. A user of etcd needs the right to
// read and write the keys that begin with the Prefix, as it is in a URL's path, and no others.
//
// A lease is trusted for TTL from before the sending of the last request that the leader answered for the session; etcd counts
// from a later moment. A grant checks in one transaction that the caller's key, and so the session, is still there.
//
// A request that is not answered within a third of Timeout is sent again, to the next member; every request may safely run
// twice. Set DialKeepAliveTime and DialKeepAliveTimeout of the client, so that its streams also leave a frozen member.
//
// Anyone may crash, be paused, be cancelled or lose a reply at any point:
//
//   - Before the key is put, nothing has happened. After it was put, without a reply: the same request again finds the key. If
//     the caller gives up instead, the key is deleted in the background, and a key of another name refuses for ten
//     minutes what may still arrive.
//   - A waiter that gives up: its key is deleted in the background, until that is known to be done or the session is over.
//     The one that watched it looks for the one before.
//   - A waiter or a holder that dies or is cut off: its keys go with its session, TTL after its last sign of life.
//   - A holder that is paused finds its context ended when it wakes up, and its session gone.
//   - A session that ends takes all locks of its Locker with it: their contexts end, and waits fail with an error, as their
//     places are lost. The next call begins another.
//   - A reply to Unlock that is lost: Unlock asks again, and then in the background.
//   - A token of a client with a user and a password ends, as etcd stood still or was started again: there are versions, 3.4.23 is one, that
//     refuse the client another one, for ever. Once a request is not answered in time, the Locker has its client forget the token, which helps
//     whatever else uses the client, too. SelfCheck finds such an etcd.
//   - A member that crashes or is cut off: requests go to the others. While there is no majority, nothing is granted, and
//     contexts end after TTL. A new leader gives all leases their whole TTL again, so holders lose nothing by an
//     election.
//
// # What is not guaranteed
//
//   - etcd before 3.4.31 and 3.5.13: a leader that was frozen for longer than a lease, and goes on when others have elected a new one,
//     ends the leases that the new one has renewed (etcd-io/etcd#15247). Their keys go at once, and a lock can be somebody else's
//     before its holder has noticed, which takes up to a third of TTL. Fences hold.
//   - etcd before 3.4.38 and 3.5.23 can answer a renewal that comes just as it ends the lease as if it had renewed it
//     (etcd-io/etcd#20547). A holder that is that late trusts its lease until the next renewal, a third of TTL later. Fences hold.
//   - etcd before 3.5 ends leases by the wall clock of its leader. If that is set back, the lease of a process that dies before it has renewed
//     it by the new time ends later by as much. Leases that live are not ended by a clock that is set, in either direction.
//   - A restored snapshot has older revisions, unless it was restored with a bump of them: fences go back.
//
// Waiters are served in the order in which their keys were put, whatever their process.
package etcd
