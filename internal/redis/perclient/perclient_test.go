package perclient_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/redis/perclient"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/leaks"
)

// thing is what clients share in these tests.
type thing struct{ closed atomic.Int64 }

func (th *thing) close() { th.closed.Add(1) }

type client struct{ name string }

func open(s *perclient.Shared[*thing], client any) (*thing, func()) {
	return s.Open(client, func() *thing { return new(thing) }, (*thing).close)
}

func TestUsersOfOneClientShareOneThing(t *testing.T) {
	t.Parallel()
	var s perclient.Shared[*thing]
	c := &client{"c"}
	a, releaseA := open(&s, c)
	b, releaseB := s.Open(c, func() *thing {
		t.Error("a second thing was made")
		return nil
	}, (*thing).close)
	expect.Equal(t, "the thing of one client", a, b)
	releaseA()
	expect.Equal(t, "times closed while in use", a.closed.Load(), 0)
	releaseB()
	expect.Equal(t, "times closed", a.closed.Load(), 1)
}

func TestClientsThatLookAlikeShareNothing(t *testing.T) {
	t.Parallel()
	var s perclient.Shared[*thing]
	a, releaseA := open(&s, &client{"same"})
	b, releaseB := open(&s, &client{"same"})
	if a == b {
		t.Error("two clients share a thing")
	}
	releaseA()
	if a.closed.Load() != 1 || b.closed.Load() != 0 {
		t.Errorf("closed %d and %d times, want 1 and 0", a.closed.Load(), b.closed.Load())
	}
	releaseB()
}

func TestReleaseCountsOnlyOnce(t *testing.T) {
	t.Parallel()
	var s perclient.Shared[*thing]
	c := &client{"c"}
	a, release := open(&s, c)
	_, other := open(&s, c)
	release()
	release()
	expect.Equal(t, "closed while the other user has it", a.closed.Load(), 0)
	other()
	other()
	expect.Equal(t, "times closed", a.closed.Load(), 1)
}

func TestClientIsOpenedAnewAfterItsLastUserHasLeft(t *testing.T) {
	t.Parallel()
	var s perclient.Shared[*thing]
	c := &client{"c"}
	a, release := open(&s, c)
	release()
	b, releaseB := open(&s, c)
	if a == b {
		t.Error("what was closed was handed out")
	}
	releaseB()
	if a.closed.Load() != 1 || b.closed.Load() != 1 {
		t.Errorf("closed %d and %d times, want once each", a.closed.Load(), b.closed.Load())
	}
}

func TestReleaseReturnsWhenTheThingIsClosed(t *testing.T) {
	t.Parallel()
	var s perclient.Shared[*thing]
	closing, closed, proceed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c := &client{"c"}
	_, release := s.Open(c, func() *thing { return new(thing) }, func(*thing) {
		close(closing)
		<-proceed
	})
	go func() {
		defer close(closed)
		release()
	}()
	<-closing
	_, next := open(&s, c) // is not held up, and does not get what is being closed
	next()
	select {
	case <-closed:
		t.Error("release has returned")
	default:
	}
	close(proceed)
	<-closed
}

// bare is a client that is not a pointer. Nobody can tell whether two values that hold a slice are the same client.
type bare struct{ addrs []string }

func TestClientsThatCannotBeComparedShareNothing(t *testing.T) {
	t.Parallel()
	var s perclient.Shared[*thing]
	c := bare{[]string{"localhost:6379"}}
	a, releaseA := open(&s, c)
	b, releaseB := open(&s, c)
	var hidden any = struct{ inner any }{c} // comparable by its type, not by its value
	h, releaseH := open(&s, hidden)
	if a == b || a == h || b == h {
		t.Error("they share a thing")
	}
	releaseA()
	releaseB()
	releaseH()
	for _, th := range []*thing{a, b, h} {
		expect.Equal(t, "times closed", th.closed.Load(), 1)
	}
}

func TestNobodyHoldsWhatIsClosedHoweverManyComeAndGo(t *testing.T) {
	t.Parallel()
	var s perclient.Shared[*thing]
	clients := []*client{{"a"}, {"b"}}
	var made, closed atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 500 {
				th, release := s.Open(clients[(i+j)%2], func() *thing {
					made.Add(1)
					return new(thing)
				}, func(th *thing) {
					th.close()
					closed.Add(1)
				})
				expect.Equal(t, "times closed when it was handed out", th.closed.Load(), 0)
				var both sync.WaitGroup
				both.Go(release)
				both.Go(release)
				both.Wait()
			}
		})
	}
	all.Wait()
	if made.Load() == 0 || made.Load() != closed.Load() {
		t.Errorf("made %d things and closed %d", made.Load(), closed.Load())
	}
}

func TestMain(m *testing.M) { leaks.Main(m) }
