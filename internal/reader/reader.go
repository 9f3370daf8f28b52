// Package reader reads keys by group commit: while one batch of GETs is in flight, the calls that arrive form the
// next one, sent when the first returns. No timer is involved: a lone call goes out at once, and the busier the
// process, the larger its batches.
//
// A call never receives a value that was read before it asked. It may share a read that has not been sent yet, never
// one that has; and since a key always rides in the same lane, it is read at most once per round trip, however many
// ask for it. One answer needs no fresh read: absence. A missing key is a hint to go and ask in earnest, so those
// who already wait for their own read of the key get it at once.
package reader

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/health"
)

// Redis is what a reader needs of a client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// ErrTimeout says that Redis did not answer in time; ErrClosed that the reader was closed.
var (
	ErrTimeout = context.DeadlineExceeded
	ErrClosed  = errors.New("reader: closed")
)

const (
	laneCount = 4   // batches in flight at once; on a cluster, one for each of its parts
	maxBatch  = 128 // keys in a batch
)

// Reader reads keys.
type Reader struct {
	rdb     Redis
	timeout time.Duration
	seed    maphash.Seed
	mget    atomic.Bool // several keys may be read with one MGET
	health  *health.Health
	lanes   []lane
	running sync.WaitGroup
}

// Read is one read of a key, shared by the calls that asked for it.
type Read struct {
	done  chan struct{} // closed when the rest is set
	asked time.Time     // by the first who did

	Raw   []byte // the value; nil if absent. It must not be changed.
	Err   error  // why there is no answer; nil if the key is absent
	Share Share
}

// Share holds what its readers make of the value, made once for all of them.
type Share struct {
	once sync.Once
	made any
}

// Make returns what the first caller's f returned.
func (s *Share) Make(f func() any) any {
	s.once.Do(func() { s.made = f() })
	return s.made
}

// New returns a reader. It does no I/O. The timeout bounds a read from the moment it is asked for. What
// becomes of the batches is reported to h, which may refuse to have them sent: then there is no answer, but ErrOpen.
func New(rdb Redis, timeout time.Duration, h *health.Health) *Reader {
	r := &Reader{rdb: rdb, timeout: timeout, seed: maphash.MakeSeed(), health: h}
	_, single := rdb.(*redis.Client)
	r.mget.Store(single)
	r.lanes = make([]lane, max(laneCount, h.Len()))
	for i := range r.lanes {
		r.lanes[i].r, r.lanes[i].breaker = r, h.Breaker(i%h.Len())
	}
	return r
}

// lane is where the key rides.
func (r *Reader) lane(key string) *lane {
	if r.health.Len() > 1 {
		return &r.lanes[r.health.Part(key)]
	}
	return &r.lanes[maphash.String(r.seed, key)%uint64(len(r.lanes))]
}

// Get reads the key. The error is the context's or ErrClosed; what Redis had to say is in the Read.
func (r *Reader) Get(ctx context.Context, key string) (*Read, error) {
	read, err := r.Ask(ctx, key)
	if err == nil {
		err = read.Wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	return read, nil
}

// Ask is the first half of Get: it has the key read, and does not wait.
func (r *Reader) Ask(ctx context.Context, key string) (*Read, error) {
	return r.lane(key).join(ctx, key)
}

// Wait waits until the rest of the Read is set.
func (r *Read) Wait(ctx context.Context) error {
	select {
	case <-r.done:
		if errors.Is(r.Err, ErrClosed) {
			return ErrClosed
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Reader) noAnswer() error {
	return fmt.Errorf("no answer within %v: %w", r.timeout, ErrTimeout)
}

// Close waits for the batches in flight. Calls that wait for a batch not sent yet get ErrClosed.
func (r *Reader) Close() {
	for i := range r.lanes {
		r.lanes[i].close()
	}
	r.running.Wait()
}
