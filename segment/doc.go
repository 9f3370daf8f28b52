// Package segment is a counter of units that many take from at once, such as the stock of a flash sale. It is split over
// several keys in different cluster slots, so that not all of them ask the same node, and never gives away more than
// there is.
//
//	stock, err := segment.New(rdb, segment.Config{Prefix: "stock"})
//	...
//	err = stock.Create(ctx, "sale:2026-05-01", 2000)
//	...
//	err = stock.Take(ctx, "sale:2026-05-01", 2) // errors.Is(err, segment.ErrShort): sold out
//
// # Guarantees
//
//   - The units of all Takes that returned nil, and what is left, are never more than Create and Add have put in.
//   - A Take takes all of its units or none, also when no segment has so many. ErrShort says that at some moment during
//     the call fewer were left in all segments together, not that one of them was short.
//   - A reply that is lost takes nothing twice and loses nothing. A Take that returns an error has taken nothing, or what
//     it took is given back in the background.
//   - Nothing is lost when a process dies, except the units of its Takes that Redis had done and that had not returned,
//     or had returned an error and were not given back yet: they stay taken.
//
// And their limits. Redis replicates asynchronously, so a failover can forget takes that were acknowledged, and then units
// are given away twice; what is evicted or flushed is gone. Where that must not happen, let the database have the
// last word. A counter that matters wants maxmemory-policy noeviction. What Redis remembers of a take is kept for 10
// minutes, of a move for a day: a network or a process that stops for longer in the middle of one can lose units or,
// in the case of a move, make some.
//
// # Protocol
//
// Segment I of N has a key whose slot is in the I-th of N equal parts of all slots, see keys.go. A segment is a hash (see
// lua/prelude.lua) with the units left in it. All segments of a counter expire at the same moment, TTL after Create.
// The first segment is the counter: it is created in one step with all units, and the others when units are moved to them.
//
// A Take asks a random segment. One script looks for enough units, takes them, and writes a receipt: so nearly every
// Take is one request. A request carries the id of a lane and a number. A lane has one request at a time, and its
// numbers grow, so Redis needs one receipt for each lane and segment, however many takes there are: a request with
// the receipt's number was done before and is answered from it, and one with a smaller number is a late copy that
// does nothing. A process has as many lanes as it ever had Takes at the same time.
//
// When the segment is short, Take reads all of them. If one has enough, it takes there. If only all together have enough, it
// moves units to the richest one and takes there. Units are never held by a process: a move is written down in the segment
// that they leave (send.lua), then they arrive in the other, which remembers the move's id (put.lua), then the
// note is removed. A process that reads the segments and finds such a note completes the move, also another's. So a mover may die
// between any two steps, and moving twice moves once. All takes are from one segment, in one step: there is nothing
// to give back when others were faster, and Take begins again after a short random pause.
//
// When all together are too few, Take reads all of them again: units may have moved from a segment that it had not read yet
// to one that it had. Each segment counts how often units came in or went to another. If no count has changed, and
// nothing was on its way, there were too few between the two readings.
//
// Who may die, be cancelled or lose a reply, and when:
//
//   - Before a script ran, nothing has happened. When the reply is lost, it is sent again, and finds its receipt.
//   - A Take gives up: its context ends, or RedisTimeout. Undo.lua, in the background, gives back what it took, or writes the
//     receipt that keeps its late copies from taking. It is tried for a minute, and once more by Close. The lane is not used
//     until then.
//   - An Add gives up: the units may have been added, or not. The error is ErrUncertain, as only the caller knows whether
//     too many or too few are worse.
//   - Create gives up: likewise. The caller may call it again: ErrExists then says that it was done, by somebody.
//   - Create stops before it has spread the units: they are in the first segment, from where they can be taken. Rebalance
//     spreads them.
package segment
