// Package sim runs a small fleet against a Redis in the same process (package memory), within a bubble of testing/synctest: minutes of its clock pass in milliseconds.
// A seed draws everything that the library does not decide itself: what the instances do and when, how long each message takes, which replies are lost,
// when an instance is cut off, stands still or dies, and what Redis evicts. A checker compares what every caller got with what the database has:
//
//   - A read that began after a change had returned nil returns nothing older. If a change returned an error, that holds on its own instance. Where
//     instances have local tiers, that of another one may be behind by Local.MaxLag, or, with StaleFor, by Local.TTL
//     while Redis does not answer. The tests have a fleet whose tiers ask for no echoes, which is found wrong.
//   - Nobody gets a row that was never committed, or the error of a transaction: transactions read rows with their contexts, before and after their commits, some
//     for longer than UpdateTimeout, beside the reads of others. What they name late, twice at the same time and again after it failed, survives their deaths.
//   - No call takes longer than its parts may take.
//   - When everything is well again, every instance reads what the database has, unless the writer died between the write and its invalidation.
//
// `go run ./proof/cmd/sim -seed N` in the repository shows a run, `-for 10m` looks for one that breaks a promise.
//
// Two runs of a seed have the same plan and the same network. They differ in what the Go runtime decides: the jitter of the library's pauses, tokens, and
// who comes first when several wake at the same moment. A seed that fails once in many repeats is one of these, and -repeat runs it again.
// In package exact nothing but the seed decides.
package sim
