package sliced

import (
	"io"

	"github.com/cacheguard/go/cacheguard"
)

// Body reads the body of a page, slice by slice. It holds one slice at a time, and gets none that is not asked for.
type Body struct {
	Page       *Page
	OnlyCached bool  // the client accepts only what is cached, and gets no slice: at the first, nobody knows whether all are there
	Err        error // why there is no further slice

	at   int64  // the next byte to be read
	rest []byte // of the slice at hand, from there on
	hows [len(outcomes)]bool
}

// Seek implements io.Seeker.
func (b *Body) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		b.at = offset
	case io.SeekCurrent:
		b.at += offset
	case io.SeekEnd:
		b.at = b.Page.Head.Length + offset
	}
	b.rest = nil
	return b.at, nil
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (n int, err error) {
	switch {
	case b.at >= b.Page.Head.Length:
		return 0, io.EOF
	case len(b.rest) == 0:
		b.rest = nil // so that there are never two slices in memory
		if b.Err = b.next(); b.Err != nil {
			return 0, b.Err
		}
	}
	n = copy(p, b.rest)
	b.rest, b.at = b.rest[n:], b.at+int64(n)
	return n, nil
}

// next gets the slice that has the next byte.
func (b *Body) next() error {
	if b.OnlyCached {
		return cacheguard.ErrNotCached
	}
	s := b.Page.sliceAt(b.at)
	body, how, err := s.retrieve(b.Page.Client.Context())
	if err != nil {
		return err
	}
	b.rest = body[b.at-s.first:]
	for i, outcome := range outcomes {
		b.hows[i] = b.hows[i] || how == outcome
	}
	return nil
}

// outcomes are those other than hits. If an answer has several, the first of them says most about it.
var outcomes = [...]cacheguard.Outcome{cacheguard.Bypassed, cacheguard.Loaded, cacheguard.Shared}

// How is how the slices that were read came about.
func (b *Body) How() cacheguard.Outcome {
	for i, how := range outcomes {
		if b.hows[i] {
			return how
		}
	}
	return cacheguard.Hit
}
