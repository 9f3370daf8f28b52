package breaker

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

const (
	turn  = 125 * time.Millisecond // how often the figures are remade
	slice = 40                     // turns that share a histogram
	hands = 12                     // histograms, of a minute together

	leastCount = 32   // replies without which nothing is known of the last minute
	leastTail  = 2000 // as above, of its slowest twentieth of a per cent
)

// latency measures how long Redis takes to answer for a part of the keyspace. A reply costs two additions; one of them,
// eight times a second, makes the figures.
type latency struct {
	minute [hands]histogram // of the last minute
	latest histogram        // of this turn
	turn   atomic.Int64     // its number
	born   time.Time

	figures  atomic.Pointer[figures]
	answered atomic.Pointer[chan struct{}] // closed by the next reply; nil: nobody waits for one

	turning sync.Mutex // by one goroutine at a time
	mood    mood
}

// figures are of the last minute, and rounded up by a fifth at most.
type figures struct {
	count                    uint64
	p99, p995, p999, longest time.Duration // longest: but for one reply in 2,000

	recent time.Duration // the median of the last turn that had replies
	enough time.Duration // longer than that is late, as it has been too long for a while; 0: it has not
}

// note notes a reply, and reports whether that made the part slow, or no more.
func (l *latency) note(took time.Duration) (changed bool) {
	now := int64(time.Since(l.born) / turn)
	at := bucketOf(took)
	l.minute[now/slice%hands][at].Add(1)
	if l.turn.Load() != now {
		changed = l.next(now)
	}
	l.latest[at].Add(1)
	if l.answered.Load() != nil {
		l.wake()
	}
	return changed
}

// next makes the figures when a turn is over.
func (l *latency) next(now int64) (changed bool) {
	if !l.turning.TryLock() {
		return false
	}
	defer l.turning.Unlock()
	was := l.turn.Swap(now)
	for s := was/slice + 1; s <= now/slice && s <= was/slice+hands; s++ {
		l.minute[s%hands].clear() // loses the reply that began it
	}
	var sum, last [buckets]uint64
	f := &figures{recent: l.figures.Load().recent}
	for i := range l.minute {
		f.count += l.minute[i].addTo(&sum)
	}
	f.p99, f.p995 = quantile(&sum, f.count, 0.99), quantile(&sum, f.count, 0.995)
	f.p999, f.longest = quantile(&sum, f.count, 0.999), quantile(&sum, f.count, 0.9995)
	n := l.latest.addTo(&last)
	l.latest.clear()
	if n > 0 {
		f.recent = quantile(&last, n, 0.5)
	}
	changed, f.enough = l.mood.judge(time.Duration(now)*turn, n, f.recent)
	l.figures.Store(f)
	return changed
}

// forget forgets that replies were slow of late: they were the first time-outs of an outage that is over.
func (l *latency) forget() {
	l.turning.Lock()
	defer l.turning.Unlock()
	l.latest.clear()
	l.mood.began, l.mood.seen = 0, 0
}

// Answered returns a channel that the next reply closes.
func (l *latency) Answered() <-chan struct{} {
	for {
		if c := l.answered.Load(); c != nil {
			return *c
		}
		c := make(chan struct{})
		if l.answered.CompareAndSwap(nil, &c) {
			return c
		}
	}
}

func (l *latency) wake() {
	if c := l.answered.Swap(nil); c != nil {
		close(*c)
	}
}

// buckets of a histogram: four for each power of two of microseconds, from 32 of them to eight seconds.
const buckets = 4 * 18

type histogram [buckets]atomic.Uint32

func (h *histogram) clear() {
	for i := range h {
		h[i].Store(0)
	}
}

// addTo adds the replies to the sum, and returns how many there are.
func (h *histogram) addTo(sum *[buckets]uint64) (n uint64) {
	for i := range h {
		of := uint64(h[i].Load())
		sum[i] += of
		n += of
	}
	return n
}

func bucketOf(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	if us < 32 {
		return 0
	}
	exp := bits.Len64(us) - 1 // from 5
	return min((exp-5)*4+int(us>>(exp-2)&3), buckets-1)
}

// upTo is the end of a bucket.
func upTo(bucket int) time.Duration {
	return time.Duration(uint64(5+bucket%4)<<(bucket/4+3)) * time.Microsecond
}

// quantile is what a share of n replies did not take longer than; 0: there were none.
func quantile(of *[buckets]uint64, n uint64, share float64) time.Duration {
	rest := n - uint64(share*float64(n))
	if n == 0 {
		return 0
	}
	for i := buckets - 1; i >= 0; i-- {
		if of[i] >= rest {
			return upTo(i)
		}
		rest -= of[i]
	}
	return upTo(0)
}
