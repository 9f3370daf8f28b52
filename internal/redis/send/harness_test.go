package send

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const (
	patient = redistest.Patience // a timeout that no test reaches
	hasty   = redistest.Brisk    // one that tests do
)

// newLink makes a link that is closed at the end of the test, before the client and the proxy are.
// newLink makes a link whose lanes have the credits for the round trip alone.
func newLink(t *testing.T, rdb Redis, timeout time.Duration) *Link {
	t.Helper()
	l := New(rdb, timeout, breaker.New(rdb, t.Name(), time.Second, nil))
	for _, lane := range l.reads {
		lane.spare = 0
	}
	t.Cleanup(l.Close)
	return l
}

// pin makes all lanes take this for the round trip, whatever they measure, unless that is shorter.
func (l *Link) pin(roundTrip time.Duration) {
	for i := range l.reads {
		for _, lane := range []*lane{l.reads[i], l.calls[i]} {
			lane.mu.Lock()
			lane.trip = trip{current: roundTrip, since: time.Now().Add(time.Hour)}
			lane.mu.Unlock()
		}
	}
}

const shortest = 1 // the round trip at which a lane has one credit

// keysOf returns n keys of one lane.
func keysOf(t *testing.T, l *Link, n int) []string {
	t.Helper()
	var found []string
	unique := t.Name() + rand.Text()
	for i := 0; len(found) < n; i++ {
		if key := unique + strconv.Itoa(i); len(found) == 0 || l.breakers.Part(key) == l.breakers.Part(found[0]) {
			found = append(found, key)
		}
	}
	return found
}

// pending is a request under way.
type pending[T any] struct {
	t     *testing.T
	leave context.CancelFunc
	done  chan struct{}
	got   T // when done is closed
	err   error
}

// begin begins a request and returns when it waits.
func begin[T any](t *testing.T, request func(context.Context) (T, error)) *pending[T] {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan struct{})
	p := &pending[T]{t: t, leave: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer cancel()
		p.got, p.err = request(waiting{ctx, sync.OnceFunc(func() { close(waits) })})
	}()
	select {
	case <-waits:
	case <-p.done: // refused at once
	case <-time.After(patient):
		t.Fatal("the request neither waits nor ends")
	}
	return p
}

// waiting is a context that says when somebody waits for its end: a request does once it is queued.
type waiting struct {
	context.Context
	waits func()
}

func (w waiting) Done() <-chan struct{} {
	w.waits()
	return w.Context.Done()
}

func (p *pending[T]) answer() T {
	p.t.Helper()
	receive(p.t, p.done)
	expect.Must(p.t, p.err)
	return p.got
}

func (p *pending[T]) expectError(want error) {
	p.t.Helper()
	receive(p.t, p.done)
	expect.ErrorIs(p.t, p.err, want)
}

// giveUp leaves and waits for the request's end.
func (p *pending[T]) giveUp() {
	p.t.Helper()
	p.leave()
	p.expectError(context.Canceled)
}

// asking is a Get under way.
type asking struct{ *pending[*Read] }

func ask(t *testing.T, l *Link, key string) asking {
	t.Helper()
	return asking{begin(t, func(ctx context.Context) (*Read, error) { return l.Get(ctx, key) })}
}

func (a asking) expect(want string) {
	a.t.Helper()
	if read := a.answer(); read.Err != nil || string(read.Raw) != want {
		a.t.Errorf("read %q, %v; want %q", read.Raw, read.Err, want)
	}
}

func (a asking) expectAbsence() {
	a.t.Helper()
	if read := a.answer(); read.Err != nil || read.Raw != nil {
		a.t.Errorf("read %q, %v; want absence", read.Raw, read.Err)
	}
}

func (a asking) expectTimeout() {
	a.t.Helper()
	if read := a.answer(); !errors.Is(read.Err, ErrTimeout) || read.Raw != nil {
		a.t.Errorf("read %q, %v; want ErrTimeout", read.Raw, read.Err)
	}
}

// echo is a script that all servers of these tests know.
var echo = script.New("return ARGV[1]")

func echoed(key, word string) *Call {
	return &Call{Script: &script.Call{Script: echo, Keys: []string{key}, Args: []any{word}}, Rank: Ordinary}
}

// doing is a Do under way.
type doing struct{ *pending[*redis.Cmd] }

func do(t *testing.T, l *Link, c *Call) doing {
	t.Helper()
	return doing{begin(t, func(ctx context.Context) (*redis.Cmd, error) { return l.Do(ctx, c.Script.Keys[0], c) })}
}

func (d doing) expect(want string) {
	d.t.Helper()
	expect.Returns(d.t, want, nil)(d.answer().Text())
}

func receive(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patient):
		t.Fatal("nothing happens")
	}
}

// stage is a link behind a proxy. Its lanes have one credit, so that what waits gathers.
type stage struct {
	*Link
	t      *testing.T
	proxy  *redistest.Proxy
	client *redis.Client
	sent   *recorder     // nil without one
	rdb    *redis.Client // past the proxy
}

// bareStage has a client without hooks.
func bareStage(t *testing.T, timeout time.Duration, tweaks ...func(*redis.Options)) *stage {
	t.Helper()
	s := &stage{t: t, proxy: redistest.StartProxy(t, shared.Addr()), rdb: shared.Client(t)}
	s.client = s.proxy.Client(t, tweaks...)
	s.Link = newLink(t, s.client, timeout)
	s.pin(shortest)
	if err := echoed("k", "").Script.Run(t.Context(), s.rdb).Err(); err != nil { // now the server knows it
		t.Fatal(err)
	}
	return s
}

func newStage(t *testing.T, timeout time.Duration, tweaks ...func(*redis.Options)) *stage {
	t.Helper()
	s := bareStage(t, timeout, tweaks...)
	s.sent = new(recorder)
	s.client.AddHook(s.sent)
	return s
}

// stubborn makes a client that waits for a reply as long as the connection stands.
func stubborn(o *redis.Options) { o.MaxRetries, o.ReadTimeout, o.WriteTimeout = -1, -1, -1 }

// stubbornStage cuts the connections at the end, as otherwise Close would wait for the replies that never come.
func stubbornStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, hasty, stubborn)
	t.Cleanup(s.proxy.Cut)
	return s
}

// hold makes the first command of that name wait for Release: on its way there, or on its way back.
func (s *stage) hold(name string, fault redistest.Fault) *redistest.Rule {
	return s.proxy.On(redistest.Command(name), fault).Times(1)
}

func (s *stage) set(key, value string) {
	s.t.Helper()
	expect.Must(s.t, s.rdb.Set(s.t.Context(), key, value, time.Minute).Err())
}

// occupied returns when a call and a read have taken the credits. Release lets them go.
func (s *stage) occupied(key string) (release func()) {
	s.t.Helper()
	heldRead, heldCall := s.hold("get", redistest.Hold), s.hold("evalsha", redistest.Hold)
	read, call := ask(s.t, s.Link, key), do(s.t, s.Link, echoed(key, "held"))
	receive(s.t, heldRead.Hit())
	receive(s.t, heldCall.Hit())
	return func() {
		heldRead.Release()
		heldCall.Release()
		read.answer()
		call.expect("held")
	}
}

// shared is for the tests that neither count nor break anything in the server itself.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }
