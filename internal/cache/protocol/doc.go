// Package protocol is what the instances of a Guard agree on in Redis: the names of keys, the format of entries, the
// scripts that change them, and the messages that the scripts send.
//
// For each key of a caller there are, in one cluster slot:
//
//   - the value: one string, see entry.go;
//   - the lease, while the value is loaded: a hash, see lua/prelude.lua;
//   - the intent, while somebody updates the key: a hash, see there.
//
// Versions of a program that run side by side each have their own values and leases, in a slot (see VersionSlot), and
// share the intent.
//
// Each script has a file in lua/ and a method of Keyspace that makes the call. Every key that a script writes has a
// TTL. The package knows nothing of callers, loads and time-outs: it makes calls and reads replies.
package protocol
