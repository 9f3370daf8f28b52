// Package chaos has tests alone: processes that read, update, invalidate, lock and count, while they are killed and stopped and
// their Redis restarts, forgets its scripts, closes connections, runs out of memory, evicts, fails over, or moves its slots. Each
// process logs what it saw by the machine's clock; the truth is in a Redis of its own that nobody touches. What all logs say together
// is checked:
//
//   - A Get that began after an Update or Invalidate had returned nil, in any process, returned no older version.
//   - Nobody who had lost a lock wrote to a store that checks fences: no count of those who did is lost.
//   - No change of a value by compare-and-swap is lost, or made twice, where Redis keeps its data.
//
// A failover may forget what was acknowledged a moment before it: what is read from then until TTL is over is excused, and
// counted. The same run with the usual mistakes has to break each of the three. CHAOS=5m makes it last so long.
package chaos
