// Package chaos has only tests. Processes read, update, invalidate, lock and count, while they are killed and stopped and their Redis
// restarts, forgets its scripts, closes connections, runs out of memory, evicts, fails over, or moves its slots. Each process logs
// what it saw, with times of the machine's clock; the truth is in a separate Redis that nobody disturbs. All logs together are
// checked:
//
//   - A Get that began after an Update or Invalidate had returned nil, in any process, returned no older version.
//   - No process that had lost a lock wrote to a store that checks fences: no count is lost.
//   - No change of a value by compare-and-swap is lost, or made twice, where Redis keeps its data.
//
// A failover may forget writes that were acknowledged a moment before: reads from then until TTL is over are excused, and
// counted. The same run with the usual mistakes must break each of the three. CHAOS=5m sets how long it lasts.
package chaos
