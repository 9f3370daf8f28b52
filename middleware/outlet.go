package middleware

import (
	"net/http"
	"sync"

	"github.com/cacheguard/go/middleware/internal/cachestatus"
)

// outlet is where a build can stream a response that cannot be stored: to the request that it runs for, while that is there.
type outlet struct {
	client client

	mu    sync.Mutex
	left  bool
	build *build
}

// client is that request.
type client interface {
	writer() http.ResponseWriter
	setStatus(f cachestatus.Forward)
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
