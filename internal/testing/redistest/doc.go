// Package redistest gives tests real redis-servers of their own, and a proxy that breaks the connection to one exactly
// where a test wants it broken. Only tests and bench import it.
//
// # Servers
//
// Start, StartCluster and StartSentinel run redis-server on free ports of 127.0.0.1 in a temporary directory, without
// persistence, and return when the servers answer. They end with the test, and with the test binary even when that is
// SIGKILLed. A missing redis-server fails the test: a protocol that was not tested must not look tested.
// REDISTEST_SERVER in the environment names another server than the redis-server on PATH:
// REDISTEST_SERVER=valkey-server.
//
// A package whose tests can share one server lets Main start it, which also looks for leftover goroutines:
//
//	var shared *redistest.Server
//
//	func TestMain(m *testing.M) { redistest.Main(m, &shared) }
//
// and each test takes shared.Client(t), which closes when that test ends.
//
// # Proxy
//
// StartProxy puts a proxy before a server. It understands RESP, so it can tell one command and one reply from the next:
// Proxy.On picks single commands and lets them run without their reply, or not at all, or when the test says so; the
// other faults are for all commands. Rule.Hit tells a test when a fault has taken hold, so that no test has to sleep.
//
// The proxy counts one reply for each command. It does not understand CLIENT REPLY, MONITOR and replication, and in
// a cluster it sees only the connections that were made to it, not connections that a redirection makes.
//
// # Trace
//
// With REDISTEST_TRACE=1 in the environment, servers print the commands that they run to the standard error, those
// inside scripts included:
//
//	REDISTEST_TRACE=1 go test ./cacheguard -run TestName -v
//
// # Processes
//
// Child runs one test of the test binary in a process of its own, which the test can kill and pause and talk to line by
// line. TestMain runs there too.
package redistest
