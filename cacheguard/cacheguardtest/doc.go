// Package cacheguardtest helps to test code that uses a [cacheguard.Guard]. It gives each test a Guard on an
// engine in its process (package memory), and a clock that the test moves.
//
//	env := cacheguardtest.New(t, cacheguard.Config{TTL: time.Minute})
//	price, err := cacheguard.Get(ctx, env.Guard, "tea", load)
//	env.Advance(time.Minute) // the entry has expired
//	price, err = cacheguard.Get(ctx, env.Guard, "tea", load)
//	if env.Loads("tea") != 2 { … }
//
// # Time
//
// The clock stands still until Advance moves it, so no entry expires, and no failure is forgotten, because the machine
// was slow. It governs TTLs and StaleFor, the memory of absence and failure, EarlyRefresh, the local tier, the ages of
// pages of package middleware, leases, and every TTL in the Redis of the test. A load takes no time unless its loader
// calls Advance. Held leases are renewed while the clock moves, as they would be in that time.
//
// Time-outs are about the machine and follow its clock: LoadTimeout, WaitTimeout, UpdateTimeout and RedisTimeout. So
// does anything that a handler takes from time.Now, such as an Expires.
//
// # Values
//
// Callers may share what they get, so each has a copy here, and the test fails at its end if a caller has changed
// slices, maps or what pointers lead to. A value that does not come back from its Codec as it was is not stored,
// EventUnstorable has the error, and the test fails at its end, with the key and the path of the field: see
// codec.Checked, which does this for a canary. []byte and strings pass through no Codec. Survives says whether values
// of a type come back.
//
// # What differs from production
//
// Jitter is off, LeaseTTL is a minute (or UpdateTimeout, if that is shorter) and RedisTimeout 20 seconds, unless the
// Config sets them. Package memory has no ACL, cluster or replication, and answers only what this library sends.
//
// Each test has its own environment, so tests can run in parallel, and everything that New starts ends with the
// test.
package cacheguardtest
