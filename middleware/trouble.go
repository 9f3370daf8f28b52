package middleware

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/cachestatus"
)

// errInterrupted says that the handler's context ended before its response was whole.
var errInterrupted = errors.New("middleware: the handler was interrupted")

// trouble answers a request without a record from the Guard: with a stale page that may stand in, or by giving
// up.
func (x *exchange) trouble(l *lookup, err error) {
	_, redisFailed := errors.AsType[*cacheguard.RedisError](err)
	_, loadFailed := errors.AsType[*cacheguard.LoadError](err)
	now := x.now()
	if (loadFailed || isTimeout(err)) && !redisFailed && x.r.Context().Err() == nil && l.mayStandIn(l.usable(), now) {
		x.res.Result = Stale
		x.send(l, found{rec: l.usable(), mine: true, how: cacheguard.Stale})
		return
	}
	x.giveUp(l, err)
}

// giveUp answers a request that there is no response for.
func (x *exchange) giveUp(l *lookup, err error) {
	_, redisFailed := errors.AsType[*cacheguard.RedisError](err)
	_, panicked := errors.AsType[*cacheguard.PanicError](err)
	_, loadFailed := errors.AsType[*cacheguard.LoadError](err)
	switch {
	case x.r.Context().Err() != nil:
		x.res.Result = Failed // the client has left
	case redisFailed:
		x.fail(http.StatusServiceUnavailable, "redis")
	case panicked, loadFailed, isTimeout(err):
		x.fail(http.StatusGatewayTimeout, "handler")
	default: // the handler asks for its own page, or the Guard is closed
		x.passThrough(l.why)
	}
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errInterrupted)
}

// fail answers with an error of the cache's own.
func (x *exchange) fail(status int, detail string) {
	x.res.Result, x.res.Status = Failed, status
	x.addStatus(x.cache.cfg.Name + cachestatus.Detail(detail))
	x.w.Header().Set("Cache-Control", "no-store")
	http.Error(x.w, strings.ToLower(http.StatusText(status)), status)
}
