package middleware

import (
	"context"
	"sync"

	"github.com/cacheguard/go/middleware/internal/writer"
)

// outlet is where a build can stream a response that cannot be stored: to the request that it runs for, while that is there.
type outlet struct {
	mu    sync.Mutex
	left  bool
	build *build
}

// take makes the request wait for the build. It reports whether the request is still there and waits for no
// other.
func (o *outlet) take(b *build) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left || o.build != nil {
		return false
	}
	o.build = b
	return true
}

// leave waits for the end of the build and returns it; nil if there was none. After that, none can begin.
func (o *outlet) leave() *build {
	o.mu.Lock()
	o.left = true
	b := o.build
	o.mu.Unlock()
	if b != nil {
		<-b.done
	}
	return b
}

// outlive is the handler's context. It ends with the load. When the response is released to the client, the load is over, and the context
// ends with the client's from then on; if no client is there, it ends at once.
func (b *build) outlive(load context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(load))
	follow := func(leader context.Context) (stop func() bool) {
		return context.AfterFunc(leader, func() { cancel(context.Cause(leader)) })
	}
	stop, ended := follow(load), false
	b.w.Leaving = func() bool {
		if !stop() {
			ended = true // the load has ended, so what comes is not whole
			return false
		}
		if b.unheard {
			cancel(writer.ErrUnheard)
			return false
		}
		stop = follow(b.lookup.x.r.Context())
		return true
	}
	b.end = func() bool {
		interrupted := ended || ctx.Err() != nil && !b.w.IsReleased()
		stop()
		cancel(nil)
		b.w.Leaving = func() bool { return !b.unheard } // what is sent after the end needs no context
		return interrupted
	}
	return ctx
}
