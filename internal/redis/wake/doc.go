// Package wake delivers wake-ups between processes: one subscription per process and Redis client serves all who
// wait, with an inbox for each prefix of keys.
//
// # Protocol
//
// An inbox is a pub/sub channel of its own, PREFIX:inbox:RANDOM, so that a Redis user who may use the keys with the
// prefix can be given the right to its channels in the same way; 128 random bits name the subscription. A caller that
// wants to be woken does this, in this order:
//
//  1. Watch the key: from now on messages for it are kept for the waiter.
//  2. Read the inbox's Address and hand it to the script that finds the key taken; the script registers it.
//  3. Wait for the waiter's message, and for a timer that bounds the wait.
//
// The script that frees the key publishes a Frame to the registered addresses. The watch begins before the
// registration, and the subscription is confirmed before there is an address, so no message is missed. Messages
// can still be lost with the connection, so:
//
//   - When the subscription breaks, and again when it is back, every waiter is told to ask again.
//   - While it is down, Address is empty: nobody can register, and waiters poll.
//   - A dead connection may look alive for minutes, and the PING of go-redis' own health check does not look for its
//     PONG. So a watchdog publishes a probe to the inbox when it has been silent for a while (2 s while somebody waits
//     for messages or listens to a channel, 30 s otherwise), and replaces the subscription if the probe does not arrive
//     within a second, or cannot be published. From then on the inbox is not live: with the watchdog's own tick, at most
//     5 s after the last message. The next subscription counts once it has brought something, if only its probe, as one
//     that is confirmed may bring nothing either. A subscription that is not confirmed within 2 s is replaced too.
//
// A message is a hint. It says why the key may be worth asking for, and may carry what the waiter was waiting for;
// the body says which state of the key it belongs to, and the waiter judges whether that is the one it registered in.
// A waiter that finds two messages is told to ask again instead: nobody may rely on seeing every one of them.
//
// On a Ring a PUBLISH inside a script reaches the subscribers of the key's shard only, so the inbox subscribes to
// each shard that is up, and has an address once all of them are confirmed.
package wake
