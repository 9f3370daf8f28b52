package middleware

import (
	"errors"
	"net/http"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/record"
)

// anew says of a page whose slices the handler does not have any more that it is to be loaded anew. Nil says it of none.
type anew struct {
	parts string // of the page that was found
	pass  bool   // it cannot be sliced, whatever it says
	away  bool   // the client has had a part of it: what is found now is not for this request
}

// isFor reports whether a record is the one that is to be replaced. Another may have done so already.
func (a *anew) isFor(rec *record.Record) bool {
	return a != nil && rec.Kind == record.Sliced && rec.Parts == a.parts
}

// passes reports whether a mark is to take its place.
func (a *anew) passes() bool { return a != nil && a.pass }

// unanswered reports whether the handler does not run for this request.
func (a *anew) unanswered() bool { return a != nil && a.away }

// breakOff ends an answer for which a slice is missing. When nothing has been sent, it starts over with a page that is loaded anew:
// it may have changed, and then has other slices. A page that has not is one that cannot be sliced, and a mark says so from then on.
func (x *exchange) breakOff(w *lateWriter, body *slicedBody) {
	l, err := body.l, body.err
	why, refused := errors.AsType[refusal](err)
	again := refused && why != failing && !x.anew.passes()
	if again {
		x.anew = &anew{parts: body.head.Parts, pass: why == noRanges || x.anew != nil, away: w.sent}
	}
	switch {
	case w.sent:
		if again {
			x.find()
		}
		x.res.Result = Failed
		panic(http.ErrAbortHandler) // as net/http does when a body is not whole
	case again:
		x.answer(x.find())
	case x.want.OnlyIfCached:
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
	case refused, errors.Is(err, cacheguard.ErrNotCached):
		x.forwardFor(forwarded{why: "partial"})
	default:
		x.giveUp(l, err)
	}
}
