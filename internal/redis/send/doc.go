// Package send carries requests to Redis: reads of keys and calls of scripts, each under one rule for queueing,
// time-outs and giving up.
//
// # How a request travels
//
//  1. A caller asks. The request joins the queue of its lane.
//  2. A lane has credits, which limit its parcels in flight: the longer a round trip takes, the more there are (see
//     trip.go). As long as it has a credit, queued requests go out at once. When it has none, requests gather, and the
//     next reply sends all of them in one parcel. No timer delays a request.
//  3. A worker carries the parcel through the user's client: a GET, an MGET, an EVALSHA or a pipeline. It holds a
//     connection until the replies are there, so replies match requests by themselves, hooks and tracing see each
//     request, and cluster redirections are the client's business.
//  4. Each caller waits with its own context and may walk away. A request that nobody waits for any more is not sent.
//     If it has been sent already, its reply is dropped; the Late function of a script says what to do about its reply.
//
// A read is shared by the callers that asked for the key before it was sent, never with later ones: a caller never gets
// a value that was read before it asked. Calls are sent by rank: what ends work, then what renews a lease, then what
// others wait for, then the rest.
//
// # Time-outs
//
// The time-out runs from the moment a parcel is taken from the queue. A parcel that has used a quarter of it gives its
// credit back, so that one connection that hangs holds up only what it carries. One that has used all of it has failed:
// its callers get an error, and its worker is left to the client's own time-outs. The circuit breaker counts parcels: a
// lost one is one failure. While the breaker is open, only what ends work or renews a lease is sent, and other queued
// requests fail at once.
//
// # What goes apart
//
// A Guard's invalidations must wait neither behind what the breaker drains nor for a credit. So RunApart has lanes of
// their own for them, with as many parcels in flight as there have to be, also while the breaker is open.
//
// So must the renewals of leases, which package lease hands over when they are due (Hand). Each node of a cluster has a
// lane of its own for them: go-redis answers none of a pipeline's commands before all nodes have answered, and when one
// of these is away, the leases on the others would end.
//
// The same goes for calls that count only when replicas have what they wrote. Their parcels have a tail: a write of
// their own (mark.lua), then WAIT, all on one connection. WAIT counts the replicas that have all that its connection
// has written. Each of their lanes goes to one node, because WAIT has no key that a client could route it by, and has
// at most a few parcels in flight, since each holds a connection until the replicas have answered. The mark is there
// because a script that runs twice may find nothing to write the second time. Without it WAIT would count the replicas
// that have an earlier write of the connection, and say nothing of the first run, which another connection sent. When
// too few replicas have answered, each call of the parcel has failed with a NotReplicated, whatever its script
// returned.
//
// The client may send such a parcel again whose connection broke: all of it, so the second copy has a WAIT of its own.
// So has a call that its caller sends again. When the server has forgotten a script, all scripts of the parcel run
// again by their sources, as all are safe to run twice. When a cluster has moved a key, its calls go to its new node.
// WAIT does not make Redis strongly consistent. It says that some replicas had the write in memory. See docs/locks.md.
//
// # Locks, cas and segment
//
// A Sender has a link whose client sends nothing twice: the Sender repeats requests itself, as it knows which may run
// twice. All Senders on the client share breakers. It sends releases ahead of the rest, until they are known to have
// run. See its comment.
//
// A lane serves one part of the keyspace that fails by itself (package breaker), or a node, and carries either reads or
// calls.
package send
