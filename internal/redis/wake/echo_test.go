package wake

import (
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// common is the server of tests that leave it as it is.
func common(t *testing.T) *redistest.Server {
	t.Helper()
	return redistest.SharedServers(t, 1)[0]
}

// echoing is an inbox that is subscribed, and whose echoes an Asker has made by their script, and counts.
func echoing(t *testing.T, rdb Redis, prefix string, every time.Duration) (in *Inbox, e *Echo, asked *atomic.Int64) {
	t.Helper()
	in, release := Open(rdb, prefix)
	asked = new(atomic.Int64)
	echoes, stop := in.Echoes(2, &Asker{Every: every, Ask: func(_ int, echo func(string) *script.Call) {
		asked.Add(1)
		_ = echo(rand.Text()).Run(t.Context(), rdb).Err() // what comes back is the answer
	}})
	t.Cleanup(func() {
		stop()
		release()
	})
	in.Start()
	redistest.Await(t, "the inbox is live", in.Live)
	return in, echoes.Of(1), asked
}

func TestAnEchoComesBackAndAnotherOneIsAskedForBeforeItIsOld(t *testing.T) {
	t.Parallel()
	_, e, asked := echoing(t, common(t).Client(t), "test", time.Millisecond)
	redistest.Await(t, "an echo is young", func() bool { return e.IsYoung(clock.Mono(), time.Hour) })
	redistest.Await(t, "more are asked for", func() bool { return asked.Load() > 5 })
	expect.Equal(t, "when the echo of another part was asked for", e.of.Of(0).asked.Load(), never)
}

func TestNoEchoIsAskedForWhileNobodyNeedsOne(t *testing.T) {
	t.Parallel()
	_, e, asked := echoing(t, common(t).Client(t), "test", time.Hour)
	e.run() // nobody has
	expect.Equal(t, "echoes asked for", asked.Load(), 0)
	if e.IsYoung(clock.Mono(), time.Hour) {
		t.Error("there is one before one was asked for")
	}
	redistest.Await(t, "one is asked for", func() bool { return asked.Load() > 0 })
}

func TestInboxesOfOnePrefixShareEchoesUntilTheLastHasLeft(t *testing.T) {
	t.Parallel()
	rdb := common(t).Client(t)
	first, leaveFirst := Open(rdb, "test")
	second, leaveSecond := Open(rdb, "test")
	other, leaveOther := Open(rdb, "other")
	defer leaveFirst()
	defer leaveSecond()
	defer leaveOther()
	slow, quick := &Asker{Every: time.Hour}, &Asker{Every: time.Minute}
	a, stopA := first.Echoes(1, slow)
	b, stopB := second.Echoes(1, quick)
	c, stopC := other.Echoes(1, slow)
	defer stopC()
	if a != b || a == c {
		t.Error("echoes are shared by others than those with the same prefix")
	}
	expect.Equal(t, "who is asked, the youngest that anybody wants", a.asker(), quick)
	stopB()
	expect.Equal(t, "who is asked, as the other has left", a.asker(), slow)
	stopA()
	expect.Equal(t, "somebody is left", a.asker() != nil, false)
	if d, stop := first.Echoes(1, slow); d == a {
		t.Error("echoes that nobody had asked for are used again")
	} else {
		stop()
	}
}

// A machine that was suspended has a monotonic clock that stood still, and one whose clock was set back has a wall clock that is behind.
func TestAnEchoIsAsOldAsTheClockSaysThatSaysMore(t *testing.T) {
	t.Parallel()
	rdb := common(t)
	type example struct {
		mono, wall, most time.Duration // ago
		young            bool
	}
	expect.Each(t, map[string]example{
		"young":                   {time.Second, time.Second, time.Minute, true},
		"old":                     {time.Hour, time.Hour, time.Minute, false},
		"the machine was asleep":  {time.Second, time.Hour, time.Minute, false},
		"the clock was set back":  {time.Second, -time.Hour, time.Minute, true},
		"set back, and it is old": {time.Hour, -time.Hour, time.Minute, false},
	}, func(t *testing.T, _ string, c example) {
		for when, seen := range map[string]bool{"before it is back": false, "after it is back": true} {
			_, e, _ := echoing(t, rdb.Client(t), "test", time.Hour)
			e.asking.Store(true) // no other one is to come
			asked, wall := clock.Mono()-c.mono, time.Now().Add(-c.wall)
			if seen {
				e.asked.Store(int64(asked))
				e.wall = wall.UnixNano()
			} else {
				e.back(int64(asked), wall.UnixNano())
			}
			expect.Equal(t, "young, though it passed "+when, e.IsYoung(clock.Mono(), c.most), c.young)
		}
	})
}

func TestOnlyAnEchoOfThePastCounts(t *testing.T) {
	t.Parallel()
	in, e, _ := echoing(t, common(t).Client(t), "test", time.Hour)
	e.asking.Store(true)
	for _, body := range []string{"", "1", "1 2", "2 1 1", "-1 1 1", "1 9000000000000000000 1", "x y z"} {
		in.dispatch(in.Channel(), Frame("", body))
	}
	if e.IsYoung(clock.Mono(), time.Hour) {
		t.Error("a probe, or nonsense, is taken for an echo")
	}
	young, old := clock.Mono()-time.Second, clock.Mono()-time.Hour
	e.back(int64(young), time.Now().Add(-time.Second).UnixNano())
	e.back(int64(old), time.Now().Add(-time.Hour).UnixNano()) // questions may overtake each other
	if !e.IsYoung(clock.Mono(), time.Minute) {
		t.Error("an older echo makes the younger one old")
	}
}

func TestNoServerVouchesForWritesThatAreMadeElsewhere(t *testing.T) {
	t.Parallel()
	ask := func(rdb Redis) error {
		return (&script.Call{Script: echoScript, Keys: []string{"k"}, Args: []any{"c", "m"}}).Run(t.Context(), rdb).Err()
	}
	server := redistest.Start(t)
	rdb := server.Client(t)
	expect.Must(t, ask(rdb))
	expect.Must(t, rdb.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	if err := ask(rdb); !script.Says(err, "NOREPLICAS") {
		t.Errorf("a primary without its replicas: %v", err)
	}
	expect.Must(t, rdb.Do(t.Context(), "replicaof", "127.0.0.1", 1).Err())
	if err := ask(rdb); !script.Says(err, "READONLY") {
		t.Errorf("a replica: %v", err)
	}
	if err := ask(redistest.WithoutPublish(common(t).Client(t))); !script.Says(err, "Script attempted") {
		t.Errorf("a server that refuses PUBLISH in scripts: %v", err)
	}
}
