package feedtest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Rotation changes the password of a feed that runs, while somebody writes.
type Rotation struct {
	*Shop

	Feed   Feed                                         // it runs, with Conn
	Write  func(ctx context.Context, name string) error // product 1, by another user
	Rotate func(password string)                        // for the feed's user
	End    func()                                       // the connections of the feed

	password atomic.Pointer[string]
	asked    atomic.Int64
}

// Password is what the feed is to connect with.
func (r *Rotation) Password() string {
	r.asked.Add(1)
	return *r.password.Load()
}

// To sets the password.
func (r *Rotation) To(password string) {
	if r.Rotate != nil {
		r.Rotate(password)
	}
	r.password.Store(&password)
}

// Run rotates some times, and expects that nothing is old or given up.
func (r *Rotation) Run() {
	r.Helper()
	whole := r.Feed.Stats().Whole
	for n := range 4 {
		var writer sync.WaitGroup
		ctx, cancel := context.WithCancel(r.Context())
		writer.Go(func() { // owner: this call; stop: cancel; joined below
			for i := 0; ctx.Err() == nil; i++ {
				_ = r.Write(r.Context(), fmt.Sprintf("%d of %d", i, n)) // one that is given up may be done later
			}
		})
		asked := r.asked.Load()
		r.To(fmt.Sprintf("secret%d", n))
		r.End()
		r.Await("the feed asks for the password", func() bool { return r.asked.Load() > asked })
		r.CatchUpInTheEnd(r.Feed)
		cancel()
		writer.Wait()
		last := fmt.Sprintf("last of %d", n)
		expect.ErrorIs(r, r.Write(r.Context(), last))
		r.CatchUpInTheEnd(r.Feed)
		r.Reads(1, last)
	}
	r.Await("the feed is out of trouble", func() bool { return r.Feed.Stats().Err == nil })
	expect.Equal(r, "kinds invalidated whole by rotations", r.Feed.Stats().Whole, whole)
}
