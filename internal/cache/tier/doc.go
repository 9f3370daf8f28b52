// Package tier is a bounded cache in this process, in front of Redis. Invalidations by other processes reach it.
//
// # Protocol
//
// Every script that invalidates a key publishes a Notice to one channel. A tier listens to it, and:
//
//   - It is only filled while the subscription stands. A read of Redis begins with a Mark, and is kept only if
//     nothing was forgotten since in the key's stripe: so a reply under way when the notice comes does not bring the
//     old value back.
//   - When the subscription is back after an interruption, everything kept before is void: notices may have been
//     lost.
//   - It is only served from while there is proof that the road of the notices is open: an echo (package wake) that
//     was asked for less than MaxLag ago.
//
// # Echo
//
// An echo is a message that this process has a script publish on a node of the key's part of the keyspace, to its own
// inbox. A script's message and a notice leave the same node in the order in which they were published, and arrive on
// one connection, whose reader takes them in one after the other. So when the echo is there, every notice is that was
// published on that node before the echo's script ran, and that is after the process asked for it. An Invalidate that
// returned before then has been heard; what the tier serves is at most as old as the question. The age of an echo is
// the time since it was asked for, by the wall clock or the monotonic clock, whichever says more: one stands still
// while the machine is suspended, the other may be set.
//
// What can go wrong, at any step:
//
//   - The reader is killed: so is its tier. It is paused, suspended or frozen, before or after it asks: its echo is
//     too old when it wakes, and it asks Redis until another one is back. Between, what came in while it slept is
//     read in order. It is paused after it has looked at the clock: that Get had begun before.
//   - The caller whose Get asked for the echo is cancelled: no caller waits for an echo, and none is its owner.
//   - The question is lost, or refused, or runs late, or twice: an echo that comes back late is as old as its
//     question, and proves what it says. The reply of the script proves nothing, and its loss costs nothing.
//   - The echo is lost, or the subscription hangs, is slow, or is dead on one side: there is no proof, and Redis is
//     asked.
//   - The invalidating process dies, is paused, or loses the reply, after its script ran: Redis has published. Before
//     that, nothing was invalidated.
//   - Redis is restarted, or another server takes its place: the connection ends, the subscription is another one,
//     and all is void. The echo's script also removes a key that is not there, so a replica refuses it, and so does a
//     primary that min-replicas-to-write has stopped: neither vouches for what others write elsewhere.
//   - A wall clock is set forward: there is no proof until the next echo. It is set back: the monotonic clock counts.
//
// It proves the road at the moment of the question, not what was said on it before, if a message can be lost in
// between without an end of the connection. By how many servers there are:
//
//   - One server, and Sentinel: a subscriber's connection has all messages in order, or ends. An echo says all about
//     what was published. A process that is cut off together with an old primary hears what is invalidated there, and
//     reads the same from it without a tier.
//   - A cluster: its bus has a connection from the node that publishes to the node that is subscribed. If that ends,
//     what it held is lost, and an echo takes the next one. That is what the numbers of notices are for. An echo asks
//     one key of its part at random: where two nodes share a part, it vouches for the one that has the key.
//   - A server that refuses PUBLISH in scripts, as serverless offerings do unless the channel is in the slot of the
//     script's keys: a script says which messages were refused, and its process publishes them, in the same request's
//     next pipeline. It may die in between, so that proves nothing: the echo's script is refused for good, and the
//     tier does not serve. With MaxLag off it does, and an entry that nobody could speak of stays until its TTL ends.
//
// An echo that the process published itself, without a script, would come back in the last case although no notice
// does.
//
// # Numbers
//
// What is lost on a cluster's bus, or was never published because the writer's user may not, no echo shows. So
// processes number their notices, for each part of the keyspace, whatever the servers are. While a number is missing,
// the tier does not serve; if it has not come after a second (two nodes may overtake each other), everything kept is
// void. A lost notice may be its source's last: so a source repeats its last number after about 1 and 4 seconds, with
// the first of its recent ones, for those who have never heard of it, and goes on where Redis refuses that: what it
// could not say is pending. If it dies before, nobody knows, and the entry stays until its TTL ends.
//
// Echoes are asked for in the background, twice in MaxLag, from the first Get on and for ten seconds after the last
// one. All Guards of a process with one client and Prefix share them. A tier with a MaxLag of -1 serves as long as
// its subscription stands, as far as anybody knows; its bound is the TTL.
package tier
