package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends"
)

// newLab opens a lab without callers: the tests call.
func newLab(t *testing.T, s settings) *lab {
	t.Helper()
	server, err := backends.Redis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	s.TTL = 3600
	l, err := openLab(t.Context(), server, backends.Patience, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	l.db.latency.Store(0) // the tests hold its connections
	return l
}

// hold takes all connections to the database until release.
func (l *lab) hold() (release func()) {
	for range connections {
		l.db.pool <- struct{}{}
	}
	return func() {
		for range connections {
			<-l.db.pool
		}
	}
}

// call calls an instance, as a caller does.
func (l *lab) call(i int) (answer, error) {
	in := l.instances[i].Load()
	c := l.ledger.begin(in)
	a, err := in.get(context.Background())
	l.ledger.end(c, a, err)
	return a, err
}

func mustCall(t *testing.T, l *lab, i int, how ...cacheguard.Outcome) {
	t.Helper()
	a, err := l.call(i)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range how {
		if a.how == want {
			return
		}
	}
	t.Errorf("%s, want %s", a.how, how)
}

// awaitFact waits for a fact.
func awaitFact(t *testing.T, what string, fact func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !fact() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("never: ", what)
		}
	}
}

func (l *lab) said(text string) bool {
	l.ledger.mu.Lock()
	defer l.ledger.mu.Unlock()
	for _, line := range l.ledger.journal {
		if strings.Contains(line.Text, text) {
			return true
		}
	}
	return false
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnExpiryCostsAQueryForEachCallerOrEachInstanceOrOne(t *testing.T) {
	t.Parallel()
	const each = 4
	for m, want := range map[mode]int{modeHand: each * instances, modeFlight: instances, modeGuard: 1} {
		l := newLab(t, settings{Mode: m})
		mustCall(t, l, 0, cacheguard.Hit)
		release := l.hold()
		must(t, l.expire(t.Context()))
		var all sync.WaitGroup
		for i := range each * instances {
			all.Go(func() {
				if _, err := l.call(i % instances); err != nil {
					t.Error(err)
				}
			})
		}
		awaitFact(t, "all have called", func() bool {
			s := l.state(t.Context(), time.Now())
			return s.Waiting == each*instances && s.Queued == int64(want)
		})
		release()
		all.Wait()
		awaitFact(t, "the expiry is over", func() bool { return l.state(t.Context(), time.Now()).Costs[m].Queries > 0 })
		if got := l.state(t.Context(), time.Now()); got.Costs[m].Queries != want || got.Peak != want {
			t.Errorf("%s: %+v, want %d queries", m, got, want)
		}
	}
}

func TestAnInstanceThatIsKilledLeavesItsLeaseBehindAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	l := newLab(t, settings{Mode: modeGuard})
	release := l.hold()
	must(t, l.expire(t.Context()))
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := l.call(0); err == nil {
			t.Error("a call of the dead instance was answered")
		}
	})
	awaitFact(t, "instance 1 loads", func() bool { return l.db.queued.Load() == 1 })
	all.Go(func() { mustCall(t, l, 1, cacheguard.Loaded, cacheguard.Shared) })
	awaitFact(t, "both have called", func() bool { return l.state(t.Context(), time.Now()).Waiting == 2 })
	must(t, l.setInstance(0, false))
	awaitFact(t, "instance 2 takes over", func() bool { return l.said("instance 2 took over") && l.db.queued.Load() == 1 })
	release()
	all.Wait()
	s := l.state(t.Context(), time.Now())
	if s.Instances[0].State != "killed" || len(s.Costs) > 0 || s.Failed != 1 {
		t.Errorf("%+v", s)
	}
	must(t, l.setInstance(0, true))
	awaitFact(t, "the product is stored", func() bool { return !l.state(t.Context(), time.Now()).Missing })
	mustCall(t, l, 0, cacheguard.Hit)
}

func TestWithoutRedisTheDatabaseIsAskedAndNobodyFails(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{modeHand, modeFlight, modeGuard} {
		l := newLab(t, settings{Mode: m})
		must(t, l.setRedis(t.Context(), down))
		mustCall(t, l, 0, cacheguard.Bypassed)
		must(t, l.setRedis(t.Context(), up))
		awaitFact(t, "Redis is asked again", func() bool {
			a, err := l.call(0)
			return err == nil && a.how == cacheguard.Hit
		})
	}
}

func TestAStaleValueIsServedWhileOneInstanceLoads(t *testing.T) {
	t.Parallel()
	l := newLab(t, settings{Mode: modeGuard, Stale: true})
	release := l.hold()
	must(t, l.expire(t.Context()))
	for i := range instances {
		awaitFact(t, "it is stale", func() bool { // a millisecond later
			a, err := l.call(i)
			return err == nil && a.how == cacheguard.Stale
		})
	}
	awaitFact(t, "one loads", func() bool { return l.db.queued.Load() == 1 })
	release()
	awaitFact(t, "it is fresh again", func() bool { return l.state(t.Context(), time.Now()).Fresh > 0 })
	awaitFact(t, "it is a hit", func() bool { // a read that began before may still be under way
		a, err := l.call(1)
		return err == nil && a.how == cacheguard.Hit
	})
	if got := l.state(t.Context(), time.Now()).Costs[modeGuard].Queries; got != 1 {
		t.Errorf("%d queries", got)
	}
}

func TestACallAfterAWriteReturnsWhatWasWritten(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{modeHand, modeGuard} {
		l := newLab(t, settings{Mode: m, Local: true})
		mustCall(t, l, 3, cacheguard.Hit, cacheguard.Local)
		l.write()
		awaitFact(t, "it is written", func() bool { return l.said("wrote version 1") })
		if a, err := l.call(3); a.product.Version != 1 || err != nil {
			t.Errorf("%s: %+v, %v", m, a, err)
		}
		if s := l.state(t.Context(), time.Now()); s.Outdated != 0 {
			t.Errorf("%d outdated answers", s.Outdated)
		}
	}
}

func TestACommitAfterAnUpdateLeavesTheOldVersionAndOneUnderAnIntentDoesNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings
		want int64
	}{
		{settings{Mode: modeHand}, 0},
		{settings{Mode: modeGuard}, 0},
		{settings{Mode: modeGuard, Intend: true}, 1},
	} {
		l := newLab(t, c.settings)
		l.rest = func(context.Context) error { // somebody reads, until what is loaded is stored
			for {
				a, err := l.call(3)
				if err != nil || a.how == cacheguard.Hit {
					return err
				}
			}
		}
		l.writeLate()
		awaitFact(t, "it is committed", func() bool { return l.said("committed version 1") })
		if a, err := l.call(2); a.product.Version != c.want || err != nil {
			t.Errorf("%+v: %+v, %v, want version %d", c.settings, a, err, c.want)
		}
		if s := l.state(t.Context(), time.Now()); s.Version != 1 || s.Answered == nil || s.Outdated != 1-c.want {
			t.Errorf("%+v: version %d, %d outdated answers", c.settings, s.Version, s.Outdated)
		}
	}
}

func TestCallersWaitForWhatIsLoadedAfterAWriteUnlessItIsPut(t *testing.T) {
	t.Parallel()
	for _, put := range []bool{false, true} {
		l := newLab(t, settings{Mode: modeGuard, Put: put})
		for i := range instances {
			mustCall(t, l, i, cacheguard.Hit)
		}
		release := l.hold()
		l.write()
		awaitFact(t, "it waits for a connection", func() bool { return l.db.queued.Load() == 1 })
		l.letOneThrough(t)
		awaitFact(t, "it is written", func() bool { return l.said("wrote version 1") })
		var all sync.WaitGroup
		for i := range instances {
			all.Go(func() {
				if a, err := l.call(i); err != nil || a.product.Version != 1 || put && a.how != cacheguard.Hit {
					t.Errorf("%+v, %v", a, err)
				}
			})
		}
		if put {
			all.Wait()
		}
		awaitFact(t, "the new version is being loaded", func() bool { return put || l.db.queued.Load() == 1 })
		awaitFact(t, "others wait", func() bool { return put || l.state(t.Context(), time.Now()).Waiting == instances })
		release()
		all.Wait()
	}
}

// letOneThrough waits until the database has been written once, and holds its connections again: who writes has one for a moment.
func (l *lab) letOneThrough(t *testing.T) {
	t.Helper()
	for l.db.version.Load() == 0 {
		<-l.db.pool
		l.db.pool <- struct{}{}
		awaitFact(t, "it is written, or waits", func() bool { return l.db.queued.Load() == 1 || l.db.version.Load() == 1 })
	}
}

func TestCallersComeAndGo(t *testing.T) {
	t.Parallel()
	l := newLab(t, settings{Mode: modeGuard, Callers: 20})
	awaitFact(t, "every instance is called", func() bool {
		for _, in := range l.state(t.Context(), time.Now()).Instances {
			if in.Answers[cacheguard.Hit] == 0 {
				return false
			}
		}
		return true
	})
	must(t, l.change(t.Context(), settings{Mode: modeGuard, TTL: 3600, Callers: 0}))
	awaitFact(t, "nobody calls", func() bool { return l.state(t.Context(), time.Now()).Waiting == 0 })
}

func TestTheTourSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var problems strings.Builder
	if code := newProgram().Execute(t.Context(), []string{"-tour", "-"}, &problems, &problems); code == 0 || !strings.Contains(problems.String(), "install chromium") {
		t.Errorf("%d: %s", code, problems.String())
	}
}

func TestWhatIsLoadedWithoutRedisIsNoExpiry(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.pays(modeGuard)
	in := &instance{answers: make(map[cacheguard.Outcome]int64)}
	for _, how := range []cacheguard.Outcome{cacheguard.Bypassed, cacheguard.Loaded} {
		c := l.begin(in)
		l.queryBegan(in)
		l.queryEnded(in)
		if len(l.journal) > 0 {
			t.Errorf("the journal has %+v", l.journal)
		}
		l.end(c, answer{how: how}, nil)
	}
	if len(l.journal) != 1 || l.journal[0].Time == 0 {
		t.Errorf("the journal has %+v, want one line with a time", l.journal)
	}
}
