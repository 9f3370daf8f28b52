// Package zookeeper is an exclusive lock on ZooKeeper (3.5 or later): a majority of its servers agrees on who has the lock, so
// the loss of a minority loses none.
//
//	conn, _, err := zk.Connect(servers, 10*time.Second, zk.WithDialer(zookeeper.Dialer(10*time.Second)))
//	locks, err := zookeeper.New(conn, zookeeper.Config{Prefix: "lock", TTL: 10 * time.Second})
//	...
//	err = locks.Do(ctx, "invoice:7", func(ctx context.Context, l *zookeeper.Lease) error {
//		return send(ctx, 7, l.Fence())
//	})
//
// # Protocol
//
// Each caller creates an ephemeral sequential node below the lock's, /cacheguard-locks/lock-Prefix:name. Their sequence is the order of
// the queue. The first has the lock; each other caller watches the node before its own, and looks again when that is gone: one is
// woken, not all. The fence is the id of the transaction that created the node (czxid). Unlock deletes the node. The lock's node is a
// container: ZooKeeper removes it some time after it is empty.
//
// ZooKeeper removes the nodes of a session that it has not heard of for the session time-out. The Locker contacts the leader
// every sixth of TTL with a sync, as a server that has lost its leader still answers reads and pings. The leader hears of a client with a
// delay, from the server that has its connection, and counts from an earlier contact. So a lease is trusted for half of
// TTL from before the last such request was sent. TTL is the session time-out that the connection was made with, or less.
//
// Anyone may crash, be paused, be cancelled or lose a reply at any point:
//
//   - Before the node is created, nothing has happened. After it was created, without a reply: the node's name begins with an id of
//     the call, which looks for it before it creates one again. A session's requests are done in order, so none comes later.
//   - A waiter that gives up: its node is deleted in the background, until that has an answer or the session is over, or the
//     Locker is closed and TTL has passed.
//     The one that watched it looks for the one before.
//   - A waiter or a holder that dies or is cut off: its nodes go with its session.
//   - A holder that is paused finds its context ended when it wakes up.
//   - A session that ends takes all locks of its connection with it: their contexts end, and waits fail with an error, as
//     their places are lost. The next call uses the connection's new session.
//   - A reply to Unlock that is lost: Unlock says so, and the node is deleted in the background.
//   - A server that crashes or is cut off: the client connects to another one with its session. Leases whose time passes
//     meanwhile are lost, and their nodes deleted. A server that is frozen accepts connections; see Dialer.
//
// # What is not guaranteed
//
//   - Requests cannot be given up: Close and what is left behind by a call that gave up wait for the client to do so, which it does when
//     its connection breaks.
//   - The nodes are open to every client (world:anyone); restrict who can reach the servers.
//   - A restored data directory has older transaction ids: fences go back.
//
// Waiters are served in the order in which their nodes were created, whatever their process.
package zookeeper
