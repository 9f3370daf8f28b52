package middleware

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// errInterrupted is why a response of the handler's is not sent: its context had ended before it was whole.
var errInterrupted = errors.New("middleware: the handler was interrupted")

// trouble answers when the Guard had no answer.
func (x *exchange) trouble(l *lookup, err error) {
	_, redisFailed := errors.AsType[*cacheguard.RedisError](err)
	_, loadFailed := errors.AsType[*cacheguard.LoadError](err)
	now := time.Now()
	if (loadFailed || isTimeout(err)) && !redisFailed && x.r.Context().Err() == nil && l.mayStandIn(l.usable(), now) {
		x.res.Result = Stale
		x.send(l, fetched{rec: l.usable(), mine: true, how: cacheguard.Stale})
		return
	}
	x.giveUp(l, err)
}

// giveUp answers when there is nothing to answer with.
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
		x.forward(l.why)
	}
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errInterrupted)
}

// fail answers with an error of the cache's own.
func (x *exchange) fail(status int, detail string) {
	x.res.Result, x.res.Status = Failed, status
	x.status(detailed(detail))
	x.w.Header().Set("Cache-Control", "no-store")
	http.Error(x.w, strings.ToLower(http.StatusText(status)), status)
}
