// Package segment is a counter of units that many callers take from at once, such as the stock of a flash sale. It is
// split over several keys in different cluster slots, so that the callers do not all ask the same node, and it never
// gives away more than there is.
//
//	stock, err := segment.New(rdb, segment.Config{Prefix: "stock"})
//	...
//	err = stock.Create(ctx, "sale:2026-05-01", 2000)
//	...
//	err = stock.Take(ctx, "sale:2026-05-01", 2) // errors.Is(err, segment.ErrShort): sold out
//
// # Guarantees
//
//   - The units of all Takes that returned nil, plus those left, are never more than Create and Add have put in.
//   - A Take takes all of its units or none, even if no single segment has that many. ErrShort says that at some moment
//     during the call, all segments together had fewer units left, not just one of them.
//   - A lost reply takes nothing twice and loses nothing. A Take that returns an error has taken nothing, or its units
//     are given back in the background.
//   - When a process dies, only these units are lost, because they stay taken: those of Takes that Redis had done but
//     that had not returned, and those of failed Takes that were not given back yet.
//
// These have limits. Redis replicates asynchronously, so a failover can forget acknowledged takes, and then units are
// given away twice. Evicted or flushed counters are gone: use maxmemory-policy noeviction where they matter. Where
// units must never be given away twice, let the database have the last word. Redis remembers a take for 10 minutes, and a
// move for a day: a network or a process that stops for longer in the middle of one can lose units or, in the case of a
// move, make some.
//
// # Protocol
//
// Segment I of N has a key whose slot is in the I-th of N equal parts of all slots (see scripts.go). A segment is a hash (see
// lua/prelude.lua) with the units left in it. All segments of a counter expire at the same moment, TTL after Create. The
// first segment is the counter: it is created in one step with all units. The others are created when units move to them.
//
// A Take asks a random segment. One script checks for enough units, takes them, and writes a receipt, so nearly
// every Take is one request. A request carries the id of a lane and a number. A lane has one request at a time, and
// its numbers grow, so Redis needs one receipt per lane and segment, however many takes there are. A request with
// the receipt's number was done before and is answered from it; one with a smaller number is a late copy and does
// nothing. A process has as many lanes as it ever had Takes at the same time.
//
// When the segment is short, Take reads all of them. If one has enough, it takes there. If only all together have enough, it
// moves units to the richest one and takes there. No process ever holds units. A move is noted in the segment that they leave
// (send.lua), then they arrive in the other, which remembers the move's id (put.lua), then the note is removed. A process that
// reads the segments and finds such a note completes the move, even one of another process. So a mover may die between any two
// steps, and a repeated move has no effect. All takes are from one segment, in one step: if others were faster, there is nothing
// to give back, and Take begins again after a short random pause.
//
// If all together have too few, Take reads all of them again: units may have moved from a segment that it had not read yet
// to one that it had. Each segment counts how often units came in or left for another. If no count has changed, and nothing
// was on its way, there were too few units between the two readings.
//
// A caller may die, be cancelled or lose a reply at any point:
//
//   - Before a script ran, nothing has happened. If the reply is lost, the script is sent again, and finds its
//     receipt.
//   - A Take gives up because its context or RedisTimeout ends. In the background, undo.lua gives back what it took, or
//     writes the receipt that keeps its late copies from taking. It is tried for a minute, and once more by Close. Until it
//     succeeds, the lane is not used.
//   - An Add gives up: the units may have been added, or not. The error is ErrUncertain, as only the caller knows whether
//     too many or too few are worse.
//   - Create gives up: the same. The caller may call it again: ErrExists then says that it was done, by somebody.
//   - Create stops before it has spread the units: they are all in the first segment, and can be taken from there.
//     Rebalance spreads them.
package segment
