package middleware

import (
	"io"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/record"
)

// slicedBody reads the body of a page, slice by slice. It holds one at a time, and gets none that is not asked for.
type slicedBody struct {
	l    *lookup
	head *record.Record
	at   int64  // the next byte to be read
	rest []byte // of the slice at hand, from there on
	err  error  // why there is no further slice
	hows [len(sliceOutcomes)]bool
}

// Seek is part of io.ReadSeeker.
func (b *slicedBody) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		b.at = offset
	case io.SeekCurrent:
		b.at += offset
	case io.SeekEnd:
		b.at = b.head.Length + offset
	}
	b.rest = nil
	return b.at, nil
}

// Read is part of io.ReadSeeker.
func (b *slicedBody) Read(p []byte) (n int, err error) {
	switch {
	case b.at >= b.head.Length:
		return 0, io.EOF
	case len(b.rest) == 0:
		b.rest = nil // two slices need not be in memory
		if b.err = b.next(); b.err != nil {
			return 0, b.err
		}
	}
	n = copy(p, b.rest)
	b.rest, b.at = b.rest[n:], b.at+int64(n)
	return n, nil
}

// next gets the slice that has the next byte. A client that wants only what is cached gets none: that they are all there cannot be
// known when the first is sent.
func (b *slicedBody) next() error {
	x := b.l.x
	if x.want.OnlyIfCached {
		return cacheguard.ErrNotCached
	}
	s := b.l.sliceAt(b.head, b.at)
	body, how, err := s.fetch(x.r.Context())
	if err != nil {
		return err
	}
	b.rest = body[b.at-s.first:]
	for i, one := range sliceOutcomes {
		b.hows[i] = b.hows[i] || how == one
	}
	return nil
}

// sliceOutcomes are those that are no hits, those first that say most about an answer that has several.
var sliceOutcomes = [...]cacheguard.Outcome{cacheguard.Bypassed, cacheguard.Loaded, cacheguard.Shared}

// result is how an answer came about that has the slices that were read.
func (b *slicedBody) result() Result {
	for i, how := range sliceOutcomes {
		if b.hows[i] {
			return Result(how)
		}
	}
	return Hit
}
