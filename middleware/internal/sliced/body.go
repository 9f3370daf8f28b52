package sliced

import (
	"io"
	"slices"

	"github.com/cacheguard/go/cacheguard"
)

// Body reads the body of a page, slice by slice. It holds one slice at a time, and gets none that is not asked for.
type Body struct {
	Page       *Page
	OnlyCached bool  // the client accepts only what is cached, and gets no slice: at the first, nobody knows whether all are there
	Err        error // why there is no further slice

	at   int64  // the next byte to be read
	rest []byte // of the slice at hand, from there on
	most int    // of outcomes, that the slices had
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
	b.most = max(b.most, slices.Index(outcomes, how))
	return nil
}

// outcomes are in order of how much they say about an answer that has several. Every other one is a hit.
var outcomes = []cacheguard.Outcome{cacheguard.Hit, cacheguard.Shared, cacheguard.Loaded, cacheguard.Bypassed}

// How is how the slices that were read came about.
func (b *Body) How() cacheguard.Outcome { return outcomes[b.most] }
