package watch

import "sync"

// backlog is trouble that lasts while something waits to be sent.
type backlog struct {
	episode
	what  string // waits
	count func() int

	counting sync.Mutex // one goroutine at a time counts: an old count must not end what has begun since
	most     int        // since some wait
}

// changed notes that another one waits, which has the name; empty: that there may be fewer.
func (b *backlog) changed(of, name string) {
	b.counting.Lock()
	defer b.counting.Unlock()
	n := b.count()
	b.most = max(b.most, n)
	if name != "" {
		b.begin(b.what, n, of, name)
	}
	if n == 0 {
		b.end(b.what, b.most)
		b.most = 0
	}
}
