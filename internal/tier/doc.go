// Package tier is a bounded cache in this process, in front of Redis, that other processes' invalidations reach.
//
// # Protocol
//
// Every script that invalidates a key publishes a Notice to one channel. A tier listens to it, and:
//
//   - It is only served from, and filled, while the subscription stands.
//   - A read of Redis begins with a Mark, and is kept only if nothing was forgotten since in the key's stripe: so a reply
//     under way when the notice comes does not bring the old value back.
//   - When the subscription stands anew, all that was kept before is void: notices may have been lost.
//   - Each process numbers its notices. While one is missing the tier is not served from; when it has not come after a
//     second (notices of one process may overtake each other), all that was kept is void.
//
// What is served is therefore older than an invalidation by the time its notice takes, by the time a dead connection goes
// unnoticed, and never by more than its TTL.
package tier
