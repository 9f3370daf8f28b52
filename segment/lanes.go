package segment

import (
	"crypto/rand"
	"sync"
)

// lane is a sequence of takes, one at a time, each with a greater number than the last. So Redis need remember only the
// last of them in each segment.
type lane struct {
	id     string
	number int64
}

// lanes without a take under way.
type lanes struct {
	mu   sync.Mutex
	free []*lane
}

// borrow returns a lane with the next number. The one that was used last comes first, so that few are in use.
func (l *lanes) borrow() *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.free)
	if n == 0 {
		return &lane{id: rand.Text(), number: 1}
	}
	next := l.free[n-1]
	l.free = l.free[:n-1]
	next.number++
	return next
}

func (l *lanes) giveBack(used *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, used)
}
