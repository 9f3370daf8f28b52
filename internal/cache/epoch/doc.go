// Package epoch makes many entries invalid at once, and finds out which are.
//
// # The rule
//
// A name is something that is invalidated as one: everything under the Prefix, a kind, a tag. Redis has an epoch for
// each name that is in use: 8 random bytes, which no other epoch ever has. To invalidate the name is to remove its
// epoch. The next load makes another one.
//
// An entry carries its Stamp: the epochs that its names had before its load began. It may be returned to a call if they
// are the current ones, as read after the call began. That is all:
//
//	before the load:    read the epochs, make missing ones              Begin, Ask, Prepare, Ready
//	after the load:     store the entry with them                       Stamp
//	in a call:          read the entry and the epochs, compare          Begin, Take, Compare, Holds
//
// It suffices, because an epoch never comes back. Assume that an invalidation returned before a call began. It removed
// the epoch of the name. The call, which reads later, finds another epoch, or none. If the entry has the one that was
// read, then the epoch was made after the invalidation, and the load, which read it first, began later still. Nothing
// else is assumed: no clock, and nothing that a process knew before the call. It does not matter whether the value is
// read before or after the epochs.
//
// # What a read asks for
//
// A read asks for the value, and for the epochs of the Prefix, the kind and the tags that the key had last, in one
// request. The tags are guessed from a bounded memory. If the entry has others, their epochs are asked for then, which
// costs a round trip.
//
// On a cluster, each part of the keyspace (package breaker) has an epoch of its own for each name, and all epochs of a
// part are in one slot of it. So a read asks the node of its value alone, if the nodes have whole parts, and a node
// that is down affects its own keys. To invalidate a name is to end its epochs in all parts, at the same time. Each
// part may fail for itself.
//
// # Tags that a load names at its end
//
// A loader may name a tag whose epoch nobody has read before the load. It is read, or made, after the load, and in the
// same step the epoch of all tags together, which the invalidation of any tag removes too (revoke.lua). If that is
// still the one from before the load, no tag was invalidated since, so the tag's epoch is the one that it had before
// the load. Otherwise the value goes to those who asked for it, and is not stored; the memory now has the tag, and the
// next load reads its epoch in time.
//
// # Who may have a value that was loaded before
//
// A call that waits for another instance's load gets its value in a message. It judges the entry by epochs that it
// asked for when it began to wait, or asks again if those are not the same: a load that began just before may have made
// them. Calls that joined a load after its loader began may have the value if the epochs, asked for while it is being
// stored, are still those of its stamp.
//
// # What can go wrong
//
//   - An epoch is evicted, expires, or is lost in a failover: its entries are invalid. The proof is always something
//     that is there.
//   - A copy of revoke.lua arrives late: it ends another epoch, and some entries are loaded once more.
//   - A copy of make.lua arrives late: if the epoch is gone, it makes another one, not the same again, because the time
//     is part of it.
//   - A process dies, or a reply is lost, between Ready and the fill: there are epochs that no entry has.
//   - The invalidation fails: it is pending (see Pending). Until it has reached Redis, this instance serves nothing
//     that has the name. A call looks at what was pending since it began, so one that read the old epoch just before
//     the invalidation arrived does not serve it.
//   - A failover to a replica that had not heard of the invalidation brings the old epoch back, as it does old values.
//
// # The local tier
//
// A tier in this process (package tier) returns entries without asking Redis. It notes the state of each name before
// the epoch is asked for (Reading.Under), and drops the entry when a notice about the name comes.
package epoch
