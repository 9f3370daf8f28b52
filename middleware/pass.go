package middleware

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// passThrough lets the handler answer for this request alone.
func (x *exchange) passThrough(why string) { x.passThroughAs(cachestatus.Forward{Why: why}) }

// bypass passes a request through that the cache does not answer.
func (x *exchange) bypass(detail string) {
	if x.want.OnlyIfCached {
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
		return
	}
	x.passThroughAs(cachestatus.Forward{Why: "bypass", Detail: detail})
}

func (x *exchange) passThroughAs(f cachestatus.Forward) {
	began := x.now()
	x.callHandler(passedFor(f.Detail), func(status int) {
		if x.checked != nil {
			x.checked.checkMark(status, x.w.Header(), began)
		}
		x.setStatus(f)
	})
}

// callHandler lets the handler answer. Before is called when the header is about to be sent.
func (x *exchange) callHandler(how Result, before func(status int)) {
	x.res.Result = how
	w := &writer.PassThrough{ResponseWriter: x.w, Before: before, Hidden: x.cache.hidden}
	x.next.ServeHTTP(w, x.r)
	w.Finish()
	x.res.Status, x.res.Route = w.Status, route(x.r)
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
