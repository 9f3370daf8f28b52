package main

// rest is what the page says beyond the run.
const rest = `## Behind twemproxy

A proxy without pub/sub stands for its kind. In front of one server, all promises of a Guard hold; these things differ:

- Nobody can subscribe. Waiters ask on a timer instead, so a value that another instance loads reaches them later: some milliseconds at first, more the longer it takes.
- The local tier is not used, as invalidations could not reach it. Without a subscription it would serve nothing.
- twemproxy ends the connection of who sends HELLO, TIME, INFO, WAIT, PUBLISH, SUBSCRIBE, SELECT or CLIENT, or a script without keys. Scripts with keys and EVALSHA pass.
- go-redis sends HELLO on each new connection, and does not use one that ends there. The client needs a Dialer whose connections answer it with an error
  (` + "`internal/testing/redistest/twemproxy.go`" + ` has one of 20 lines); then it goes on with RESP2. Set ` + "`DisableIdentity`" + ` too, and no DB.
- ` + "`SelfCheck`" + ` returns an error that ends with "cannot use Redis, at TIME: EOF", because it tries each command by itself; the Guard works nevertheless.
- ` + "`Config.Replicas`" + ` needs WAIT, and the page of package admin cannot send to the fleet.
- With more than one server behind the proxy nothing is promised.
`
