package send

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/slab"
	"github.com/cacheguard/go/internal/run/latch"
)

// maxReads is how many keys one parcel reads.
const maxReads = 128

// Read is one read of a key, shared by the calls that asked for it before it was sent.
type Read struct {
	Raw   []byte // the value; nil if absent. It must not be changed.
	Err   error  // why there is no answer; nil if the key is absent
	Share Share

	key     string
	lane    *lane
	beside  *beside
	group   *reads // nil: it is answered
	waiting int    // calls; guarded by the lane's mutex
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

// Get reads the key, and beside it, in the same request, others of the same part of the keyspace, for Read.Beside. The
// error is the context's or ErrClosed; what Redis had to say is in the Read.
func (l *Link) Get(ctx context.Context, key string, beside ...string) (*Read, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	read, err := l.Ask(ctx, key, beside...)
	if err == nil {
		err = read.Wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	return read, nil
}

// Ask is the first half of Get: it begins to read, and does not wait. Each call is followed by at most one Wait.
func (l *Link) Ask(ctx context.Context, key string, beside ...string) (*Read, error) {
	lane := l.reads[l.breakers.Part(key)]
	lane.mu.Lock()
	defer lane.leave() // the parcel is not taken before the mutex is free
	return lane.joinLocked(ctx, key, beside, nil)
}

// joinLocked returns the queued read of the key, a new one, made in the room, if there is none.
func (l *lane) joinLocked(ctx context.Context, key string, beside []string, room *slab.Slab[Read]) (*Read, error) {
	if l.closed {
		return nil, ErrClosed
	}
	l.arrived++
	q := l.queue.(*readQueue)
	read := q.byKey[key]
	if read == nil {
		read = q.addLocked(ctx, l, key, room)
	}
	read.beside.add(beside)
	read.waiting++
	return read, nil
}

// Wait waits for the answer.
func (r *Read) Wait(ctx context.Context) error {
	late, err := r.WaitLate(ctx)
	if !late {
		return err
	}
	if err := r.wait(ctx, r.group.answered.After()); err != nil {
		return err
	}
	return r.group.end
}

// WaitLate is Wait until the answer is late. If it is, Wait or Leave follows.
func (r *Read) WaitLate(ctx context.Context) (late bool, err error) {
	if r.group == nil {
		return false, nil
	}
	if err := r.wait(ctx, r.group.answered.Early()); err != nil {
		return false, err
	}
	if r.group.answered.After() != nil {
		return true, nil
	}
	return false, r.group.end
}

// Age is how long ago the first key of its parcel was asked for. It is called when the answer is late.
func (r *Read) Age() time.Duration { return time.Since(r.group.asked) }

// IsAnswered reports whether Wait returns at once.
func (r *Read) IsAnswered() bool { return r.group == nil || r.group.answered.IsDone() }

// Answered is closed when the read, which was not answered, is answered, or has become late since: ask IsAnswered.
func (r *Read) Answered() <-chan struct{} {
	select {
	case <-r.group.answered.Early():
		if rest := r.group.answered.After(); rest != nil {
			return rest
		}
	default:
	}
	return r.group.answered.Early()
}

// Leave is for a call that does not wait any more.
func (r *Read) Leave() {
	r.lane.mu.Lock()
	defer r.lane.mu.Unlock()
	r.waiting-- // 0, and not sent: it never will be
}

func (r *Read) wait(ctx context.Context, answered <-chan struct{}) error {
	select {
	case <-answered: // as for other keys of a GetMany
	default:
		select {
		case <-answered:
		case <-ctx.Done():
			r.Leave()
			return ctx.Err()
		}
	}
	return nil
}

// readQueue has the reads that wait, in groups that are sent together.
type readQueue struct {
	groups []*reads // the last one may grow
	byKey  map[string]*Read
	room   [1]*reads // of groups, mostly
}

func (q *readQueue) addLocked(ctx context.Context, l *lane, key string, room *slab.Slab[Read]) (read *Read) {
	if n := len(q.groups); n == 0 || len(q.groups[n-1].all) >= maxReads {
		g := &reads{lane: l, carried: operation{caller: ctx}}
		g.answered.Make()
		g.asked = l.asksLocked()
		g.all, g.beside.keys, read = g.room.all[:0], g.room.beside[:0], &g.room.first
		q.groups = append(q.groups, g)
	}
	g := q.groups[len(q.groups)-1]
	if read == nil {
		if room == nil { // as many more as there are: they are wanted and let go together
			room, g.more.Left = &g.more, len(g.all)
		}
		read = room.New()
	}
	read.key, read.lane, read.group, read.beside = key, l, g, &g.beside
	g.all = append(g.all, read)
	if q.byKey == nil {
		q.byKey = make(map[string]*Read)
	}
	q.byKey[key] = read
	return read
}

func (q *readQueue) empty() bool { return len(q.groups) == 0 }
func (q *readQueue) full() bool  { return len(q.groups) > 0 && len(q.groups[0].all) >= maxReads }

// take leaves out what nobody waits for.
func (q *readQueue) take(urgentOnly bool, _ time.Duration, _ bool) parcel {
	for len(q.groups) > 0 && !urgentOnly {
		g := q.popLocked()
		kept := g.all[:0]
		for _, read := range g.all {
			if read.waiting > 0 {
				kept = append(kept, read)
			} else {
				read.Err = errUnsent
			}
		}
		clear(g.all[len(kept):])
		if g.all = kept; len(kept) > 0 {
			return g
		}
		g.answered.Done()
	}
	return nil
}

// errUnsent ends a read that nobody should wait for, so that nobody waits for ever.
var errUnsent = errors.New("send: every caller had left before the read was sent")

func (q *readQueue) popLocked() *reads {
	g := q.groups[0]
	q.groups[0] = nil
	if q.groups = q.groups[1:]; len(q.groups) == 0 {
		q.groups = q.room[:0]
	}
	for _, read := range g.all {
		delete(q.byKey, read.key)
	}
	return g
}

func (q *readQueue) drain(bool) (all []parcel) {
	for len(q.groups) > 0 {
		all = append(all, q.popLocked())
	}
	return all
}

// overdue tells the readers of those groups that wait.
func (q *readQueue) overdue(before time.Time) (oldest time.Time) {
	for _, g := range q.groups {
		if oldest = g.overdue(before); !oldest.IsZero() {
			break // the next ones are younger
		}
	}
	return oldest
}

// reads are a parcel of reads.
type reads struct {
	lane     *lane
	carried  operation
	all      []*Read
	replies  replies // of all, and then of what is beside them
	beside   beside
	asked    time.Time   // the first of them; zero: they are never late
	answered latch.Latch // done when the reads are answered
	end      error       // ErrClosed: that is the answer
	more     slab.Slab[Read]
	room     struct { // of the only read, mostly
		first  Read
		all    [1]*Read
		answer [1]answer
		beside [3]string // epochs of the Prefix, of a kind and of a tag
		args   [1 + 1 + 3]any
		mget   redis.StringSliceCmd
	}
}

func (g *reads) late()                 {}
func (g *reads) longer() time.Duration { return 0 }

func (g *reads) under(ends context.Context) context.Context {
	g.carried = operation{ends, g.carried.caller}
	return &g.carried
}

func (g *reads) carry(ctx context.Context) outcome {
	g.replies = g.fetch(ctx)
	o := outcome{err: g.replies.of(0).err}
	for i := range g.len() {
		a := g.replies.of(i)
		o.note(g.lane.link, a.err)
		o.bytes += len(a.raw)
	}
	return o
}

// len is how many keys the parcel reads.
func (g *reads) len() int { return len(g.all) + len(g.beside.keys) }

// overdue tells those who asked by then that their answers are late, once. It returns when they asked who will want to
// know later; zero: nobody will. It is called with the lane's mutex held.
func (g *reads) overdue(before time.Time) (oldest time.Time) {
	switch {
	case g.asked.After(before):
		return g.asked
	case !g.asked.IsZero():
		g.answered.Late()
	}
	return oldest
}

func (g *reads) deliver() {
	for i, read := range g.all {
		a := g.replies.of(i)
		read.Raw, read.Err = a.raw, a.err
	}
	g.beside.replies, g.beside.first = g.replies, len(g.all)
	g.answered.Done()
}

func (g *reads) fail(err error) {
	for _, read := range g.all {
		read.Err = err
	}
	if errors.Is(err, ErrClosed) {
		g.end = ErrClosed
	}
	g.answered.Done()
}

// leave gives the mutex of a lane back, if there is one, and has what was queued sent.
func (l *lane) leave() {
	if l != nil {
		l.dispatchLocked()
		l.mu.Unlock()
	}
}
