// Package tier is a bounded cache in this process, in front of Redis. Invalidations by other processes reach it.
//
// # Protocol
//
// Every script that invalidates a key publishes a Notice to one channel. A tier listens to it, and:
//
//   - It is only served from, and filled, while the subscription stands.
//   - A read of Redis begins with a Mark, and is kept only if nothing was forgotten since in the key's stripe: so a
//     reply under way when the notice comes does not bring the old value back.
//   - When the subscription is back after an interruption, everything kept before is void: notices may
//     have been lost.
//   - Each process numbers its notices. While one is missing, the tier does not serve; if it has not come after a
//     second (notices of one process may overtake each other), everything kept is void. A notice can get lost without a
//     broken connection, as between two nodes of a cluster, and be its source's last. So each process repeats its last
//     number after about 1 and 4 seconds, with the first of its recent ones: the source may be one of which nothing was
//     heard.
//
// So the tier may serve a value after its invalidation for as long as the notice takes, or a dead connection or a lost
// notice goes unnoticed, but never longer than its TTL.
package tier
