package middleware

import (
	"context"
	"errors"
	"net/http"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/record"
)

// answer sends what was found or made. It reports whether the answer has to start over.
func (x *exchange) answer(l *lookup, got found) (again bool) {
	x.res.Result, x.res.NotStored = got.result(), l.detail(got.notStored())
	if got.own != nil {
		if did, again := x.answerOwn(l, got); did {
			return again
		}
	}
	switch err := got.err; {
	case err == nil && got.rec.IsResponse() && got.mine:
		return x.send(l, got)
	case err == nil && got.rec.Kind == record.Failed:
		x.fail(http.StatusInternalServerError, "handler-panicked")
	case err == nil && got.rec.Kind == record.PassThrough:
		if len(got.rec.Trailer) == 0 { // else no header refutes it
			x.marked = l
		}
		x.passThrough(l.why, l.detail(got.rec.Why()))
	case err == nil, errors.Is(err, cacheguard.ErrNotCached), x.want.OnlyIfCached:
		x.passThrough(l.why, "")
	default:
		return x.trouble(l, err, l.standIn)
	}
	return false
}

// answerOwn answers a request whose build ran, if nobody else may have the response. It reports whether it did.
func (x *exchange) answerOwn(l *lookup, got found) (did, again bool) {
	own := got.own
	x.res.Route = own.route
	kept := got.err == nil && got.rec.IsResponse() && got.mine && !got.rec.Leftover
	switch {
	case own.unheard && kept && got.rec.Kind == record.Sliced:
		return false, false // the handler was stopped when it had said how large the page is
	case own.unheard && own.w.IsReleased() && !own.interrupted:
		x.passThrough(l.why, l.detail(own.w.Unfit)) // with its Range, or as a HEAD
	case own.wasCutOff() && !own.w.Reached() && (own.interrupted || x.mayStandIn(l.standIn, x.now())),
		own.standsIn && own.validate == nil:
		return true, x.trouble(l, errInterrupted, l.standIn)
	case own.panicked != nil:
		x.hadOwn(own)
		panic(own.panicked)
	case own.w.Reached():
		x.hadOwn(own)
	case own.confirmed, own.standsIn, kept:
		return false, false
	case own.unheard:
		x.passThrough(l.why, l.detail(own.w.Unfit))
	default:
		own.w.Release()
		own.w.Finish()
		x.res.Status = own.w.Status
	}
	return true, false
}

// hadOwn describes the response to a client that has had it, or the beginning.
func (x *exchange) hadOwn(own *build) {
	if !own.w.Reached() {
		return
	}
	if x.res.Status = own.w.Status; x.res.Result == Failed { // it has left since, so nothing was found
		x.res.Result, x.res.NotStored = passedFor(own.w.Unfit), own.lookup.detail(own.w.Unfit)
	}
}

// trouble answers a request that has no record from the Guard: with a stale page, if that may stand in, by the handler for this request
// alone, or with an error. It reports whether the answer has to start over.
func (x *exchange) trouble(l *lookup, err error, stale *record.Record) (again bool) {
	redisFailed := errors.As(err, new(*cacheguard.RedisError))
	panicked := errors.As(err, new(*cacheguard.PanicError))
	loadFailed := errors.As(err, new(*cacheguard.LoadError))
	timedOut := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errInterrupted)
	switch {
	case x.r.Context().Err() != nil:
		x.res.Result = Failed // the client has left
	case redisFailed:
		x.fail(http.StatusServiceUnavailable, "redis")
	case (loadFailed || timedOut) && x.mayStandIn(stale, x.now()):
		x.res.Result = Stale
		return x.send(l, found{rec: stale, mine: true, how: cacheguard.Stale})
	case panicked, loadFailed, timedOut:
		x.fail(http.StatusGatewayTimeout, "handler")
	default: // the handler asks for its own page, or the Guard is closed
		x.passThrough(l.why, "")
	}
	return false
}
