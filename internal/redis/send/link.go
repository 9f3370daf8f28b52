package send

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/script"
)

// Redis is what a Link needs of a client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// ErrTimeout says that Redis did not answer in time; ErrClosed that the Link was closed.
var (
	ErrTimeout = context.DeadlineExceeded
	ErrClosed  = errors.New("send: closed")
)

// Link carries the requests of one user of a Redis client.
type Link struct {
	rdb      Redis
	alone    script.Processor // for scripts
	piped    script.Pipeliner // as above
	once     bool             // it sends no pipeline twice
	timeout  time.Duration
	breakers *breaker.Set
	mget     atomic.Bool // several keys may be read with one MGET
	reads    []*lane     // one for each part of the keyspace
	calls    []*lane     // as above
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	aparts map[route]*lane // see RunApart

	// LateAfter is how long a request of a part is kept waiting before those who want to know are told so; 0, and nil:
	// nobody is. It is set before anything is asked.
	LateAfter func(*breaker.Breaker) time.Duration

	release func() // ends the breakers, or gives up shared ones
}

// New returns a Link. It does no I/O and starts no goroutine. The timeout bounds a request from the moment it is sent.
func New(rdb Redis, timeout time.Duration, h *breaker.Set) *Link {
	l := &Link{rdb: rdb, alone: rdb, piped: rdb, timeout: timeout, breakers: h, aparts: make(map[route]*lane), release: h.Close}
	if goredis.IsCluster(rdb) {
		// A cluster client sends a whole pipeline again when its first command fails, beside those of its commands that
		// it has sent to other nodes already: two goroutines then write into one command.
		l.piped, l.once = script.OncePipeliner(rdb), true
	}
	l.mget.Store(goredis.IsSingle(rdb))
	for part := range h.Len() {
		reads := newLane(l, h.Breaker(part), new(readQueue))
		reads.spare = spareReads
		l.reads = append(l.reads, reads)
		l.calls = append(l.calls, newLane(l, h.Breaker(part), &callQueue{most: maxCalls}))
	}
	return l
}

// NewOnce returns a Link that makes the client send nothing twice. What cannot make pipelines gets one call at a time.
func NewOnce(rdb script.Processor, timeout time.Duration) *Link {
	all, pipes := rdb.(Redis)
	if !pipes {
		all = lone{rdb}
	}
	h, release := breaker.Open(rdb, timeout)
	l := New(all, timeout, h)
	l.release = release
	l.alone, l.piped, l.once = script.Once(rdb), script.OncePipeliner(all), true
	for _, lane := range l.calls {
		if !pipes {
			lane.queue.(*callQueue).most = 1
		}
	}
	return l
}

// lone is a client without pipelines.
type lone struct{ script.Processor }

// Pipeline is not called.
func (lone) Pipeline() redis.Pipeliner { return nil }

// RoundTrip is how long a call for the key takes at present, as far as is known.
func (l *Link) RoundTrip(key string) time.Duration {
	lane := l.calls[l.breakers.Part(key)]
	lane.mu.Lock()
	defer lane.mu.Unlock()
	return lane.trip.smooth
}

// Shortest is how long a read of the key takes at least at present; 0: nothing is known.
func (l *Link) Shortest(key string) time.Duration {
	lane := l.reads[l.breakers.Part(key)]
	lane.mu.Lock()
	defer lane.mu.Unlock()
	return lane.trip.shortest()
}

// BytesRead is how many bytes of values were read, ever.
func (l *Link) BytesRead() (n uint64) {
	for _, lane := range l.reads {
		lane.mu.Lock()
		n += lane.bytes
		lane.mu.Unlock()
	}
	return n
}

// StopReading refuses new reads with ErrClosed, and answers reads that are not sent yet with it.
func (l *Link) StopReading() {
	for _, lane := range l.reads {
		lane.close()
	}
}

// Close does so for calls too, ends the probes of the breakers, and waits for what is in flight: when Redis hangs, for
// the client's own time-outs.
func (l *Link) Close() {
	l.StopReading()
	l.mu.Lock()
	l.closed = true
	calls := slices.AppendSeq(slices.Clone(l.calls), maps.Values(l.aparts))
	l.mu.Unlock()
	for _, lane := range calls {
		lane.close()
	}
	l.running.Wait()
	for _, lane := range slices.Concat(l.reads, calls) {
		lane.mu.Lock()
		lane.alarm.Stop()
		lane.mu.Unlock()
	}
	l.release()
}
