// Package consistency has only tests. Processes read and write rows of a PostgreSQL through a cache on Redis, while they are killed and
// paused, Redis restarts empty, and replies and connections are lost. Each process logs what it saw, with times of the machine's clock.
// Every second update is a Put. All logs together are checked for the promise: a Get that began after an Update or a Put had returned nil,
// in any process, returned no older version. CONSISTENCY=30s makes the tests run for that long.
//
// In another run, four processes write two rows at a time in transactions around which they have intents, and each is killed, or paused for longer than
// an intent lasts, at each step: with one Redis, with one that has a replica (Config.Replicas), and on a cluster. And transactions name two rows in
// opposite orders; TRANSACTIONS is how many.
//
// The same run with delete-after-write by hand must break the promise. Without faults, Get, Update and Put together must be
// linearizable.
package consistency
