// Package cacheguardtest is for testing code that has a [cacheguard.Guard]: a Guard on a Redis in the process
// (miniredis), for one test, with a clock that the test moves.
//
//	env := cacheguardtest.New(t, cacheguard.Config{TTL: time.Minute})
//	price, err := cacheguard.Get(ctx, env.Guard, "tea", load)
//	env.Advance(time.Minute) // the entry has expired
//	price, err = cacheguard.Get(ctx, env.Guard, "tea", load)
//	if env.Loads("tea") != 2 { … }
//
// # Time
//
// The clock stands still until Advance moves it: an entry does not expire, and a failure is not forgotten, because the
// machine was slow. By this clock go TTLs and StaleFor, the memory of absence and failure, EarlyRefresh, the local tier, Verify.Delay,
// the ages of pages of package middleware, leases, and every TTL in the Redis of the test. A load takes no time, unless its loader
// calls Advance. Leases that are held are renewed while the clock moves, as they would be in that time.
//
// Time-outs are about the machine and go by its clock: LoadTimeout, WaitTimeout, UpdateTimeout and RedisTimeout. So does what a handler
// takes from time.Now, such as an Expires.
//
// # What differs from production
//
// Jitter is off, LeaseTTL is a minute and RedisTimeout 20 seconds, unless the Config sets them. miniredis has no eviction, ACL,
// cluster and replication.
//
// Each test has an environment of its own, so tests can run in parallel, and all that New starts ends with the test.
package cacheguardtest
