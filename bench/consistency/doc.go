// Package consistency has tests alone: processes that read and write rows of a PostgreSQL through a cache on Redis, while
// they are killed and paused, Redis restarts empty, and replies and connections are lost. Each process logs what it saw,
// by the machine's clock. Every second update is a Put. The promise is checked in what all logs say together: a Get that began
// after an Update or a Put had returned nil, in any process, returned no older version. CONSISTENCY=30s makes the tests run for that long.
//
// The same run with delete-after-write by hand has to break the promise. And without faults, Get, Update and Put together have
// to be linearizable.
package consistency
