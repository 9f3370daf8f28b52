package reader

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/redistest"
)

const patient = 30 * time.Second // a timeout that no test reaches

// newReader makes a reader that is closed at the end of the test, before the client and the proxy are.
func newReader(t *testing.T, rdb Redis, timeout time.Duration) *Reader {
	t.Helper()
	r := New(rdb, timeout, health.New(rdb, nil))
	t.Cleanup(r.Close)
	return r
}

// keys returns n keys that ride in one lane.
func keys(t *testing.T, r *Reader, n int) []string {
	t.Helper()
	var found []string
	unique := t.Name() + rand.Text()
	for i := 0; len(found) < n; i++ {
		if key := unique + strconv.Itoa(i); len(found) == 0 || r.lane(key) == r.lane(found[0]) {
			found = append(found, key)
		}
	}
	return found
}

// asking is a Get under way.
type asking struct {
	t     *testing.T
	leave context.CancelFunc
	done  chan struct{}
	read  *Read // when done is closed
	err   error
}

// ask begins a Get and returns when it waits for its read.
func ask(t *testing.T, r *Reader, key string) *asking {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := waiting{Context: ctx, waits: make(chan struct{})}
	a := &asking{t: t, leave: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		defer cancel()
		a.read, a.err = r.Get(w, key)
	}()
	receive(t, w.waits)
	return a
}

// waiting is a context that says when somebody waits for its end: a Get does once it has joined a read.
type waiting struct {
	context.Context
	waits chan struct{}
}

func (w waiting) Done() <-chan struct{} {
	close(w.waits) // a Get looks once
	return w.Context.Done()
}

// answer waits for the Get and fails the test if it has an error.
func (a *asking) answer() *Read {
	a.t.Helper()
	receive(a.t, a.done)
	if a.err != nil {
		a.t.Fatalf("Get: %v", a.err)
	}
	return a.read
}

func (a *asking) expect(want string) {
	a.t.Helper()
	if read := a.answer(); read.Err != nil || string(read.Raw) != want {
		a.t.Errorf("read %q, %v; want %q", read.Raw, read.Err, want)
	}
}

func (a *asking) expectAbsence() {
	a.t.Helper()
	if read := a.answer(); read.Err != nil || read.Raw != nil {
		a.t.Errorf("read %q, %v; want absence", read.Raw, read.Err)
	}
}

func receive(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing happens")
	}
}

// recorder notes what a client sends: the keys of each command and each pipeline.
type recorder struct {
	mu      sync.Mutex
	batches [][]string
	piped   []bool
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.note([]redis.Cmder{cmd}, false)
		return next(ctx, cmd)
	}
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.note(cmds, true)
		return next(ctx, cmds)
	}
}

func (r *recorder) note(cmds []redis.Cmder, piped bool) {
	var batch []string
	for _, cmd := range cmds {
		switch cmd.Name() {
		case "get":
			batch = append(batch, cmd.Args()[1].(string))
		case "mget":
			for _, key := range cmd.Args()[1:] {
				batch = append(batch, key.(string))
			}
		case "hello", "client": // of a new connection
			return
		default:
			batch = append(batch, cmd.String())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches, r.piped = append(r.batches, batch), append(r.piped, piped)
}

func (r *recorder) expect(t *testing.T, want ...[]string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.EqualFunc(r.batches, want, slices.Equal) {
		t.Errorf("sent %q, want %q", r.batches, want)
	}
}

// stage is a reader behind a proxy whose commands are recorded.
type stage struct {
	*Reader
	proxy *redistest.Proxy
	sent  *recorder
	rdb   *redis.Client // past the proxy
}

func newStage(t *testing.T, timeout time.Duration, tweaks ...func(*redis.Options)) *stage {
	t.Helper()
	s := &stage{proxy: redistest.StartProxy(t, shared.Addr()), sent: new(recorder), rdb: shared.Client(t)}
	client := s.proxy.Client(t, tweaks...)
	client.AddHook(s.sent)
	s.Reader = newReader(t, client, timeout)
	return s
}

// hold makes the first GET wait for Release: on its way there, or on its way back.
func (s *stage) hold(fault redistest.Fault) *redistest.Rule {
	return s.proxy.On(redistest.Command("get"), fault).Times(1)
}

func (s *stage) set(t *testing.T, key, value string) {
	t.Helper()
	if err := s.rdb.Set(t.Context(), key, value, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
}
