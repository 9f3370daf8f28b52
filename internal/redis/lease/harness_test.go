package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The tests of the keeper run on the virtual time of a synctest bubble, in which Redis is a hook that answers at once
// or as it is told. redis_test.go has the real one.

const timeout = time.Second

var errDown = errors.New("redis is down")

// fake is a Redis that notes the pipelines of renewals it is sent, and when.
type fake struct {
	*redis.Client
	began time.Time
	reply reply // nil: the lease was extended

	mu   sync.Mutex
	sent []pipeline
}

// reply is what Redis has to say to the renewal of a lease.
type reply func(ctx context.Context, key string) (int64, error)

type pipeline struct {
	at   time.Duration // since the test began
	keys []string
}

func newFake(t *testing.T, reply reply) *fake {
	f := &fake{began: time.Now(), reply: reply}
	f.Client = redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:1", // is not asked, and not looked up
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	f.AddHook(f)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func (f *fake) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (f *fake) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f *fake) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var keys []string
		for _, cmd := range cmds {
			keys = append(keys, cmd.Args()[3].(string))
		}
		f.mu.Lock()
		f.sent = append(f.sent, pipeline{time.Since(f.began), keys})
		f.mu.Unlock()
		for i, cmd := range cmds {
			kept, err := int64(1), error(nil)
			if f.reply != nil {
				kept, err = f.reply(ctx, keys[i])
			}
			cmd.(interface{ SetVal(any) }).SetVal(kept)
			cmd.SetErr(err)
		}
		return nil
	}
}

// times is when renewals were sent.
func (f *fake) times() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var at []time.Duration
	for _, p := range f.sent {
		at = append(at, p.at)
	}
	return at
}

// sizes is how many renewals each pipeline had.
func (f *fake) sizes() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var n []int
	for _, p := range f.sent {
		n = append(n, len(p.keys))
	}
	return n
}

// count is how often the lease was sent to be renewed.
func (f *fake) count(key string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.sent {
		if slices.Contains(p.keys, key) {
			n++
		}
	}
	return n
}

// pass lets virtual time pass, and then everything that is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bubble runs a test on virtual time with a keeper of its own, which has been released when the bubble ends.
func bubble(t *testing.T, reply reply, test func(t *testing.T, f *fake, k *lease.Keeper)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, reply)
		k, release := lease.Open(f, timeout)
		defer release()
		test(t, f, k)
	})
}

var anyScript = script.New("return 1")

func renewal(key string, ttl time.Duration, lost func()) *lease.Renewal {
	return &lease.Renewal{Lease: &told{call: script.Call{Script: anyScript, Keys: []string{key}}, lost: lost}, TTL: ttl}
}

// told is a lease that records what happens to it.
type told struct {
	call script.Call
	due  func()
	kept func(sent time.Time)
	lost func()
}

func (l *told) Due() script.Call {
	if l.due != nil {
		l.due()
	}
	return l.call
}

func (l *told) Kept(sent time.Time, _ int) {
	if l.kept != nil {
		l.kept(sent)
	}
}

func (l *told) Lost(int) { l.lost() }

// keep returns what drops the lease.
func keep(k *lease.Keeper, r *lease.Renewal) (drop func()) {
	k.Keep(r)
	return func() { k.Drop(r) }
}

func seconds(s ...float64) []time.Duration {
	var d []time.Duration
	for _, s := range s {
		d = append(d, time.Duration(s*float64(time.Second)))
	}
	return d
}

func expectTimes(t *testing.T, f *fake, want ...float64) {
	t.Helper()
	if got := f.times(); !slices.Equal(got, seconds(want...)) {
		t.Errorf("renewals at %v, want %v", got, seconds(want...))
	}
}

func expectSizes(t *testing.T, f *fake, want ...int) {
	t.Helper()
	got := f.sizes()
	slices.Sort(got) // pipelines of one moment are sent side by side
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("pipelines of %v, want %v", got, want)
	}
}

// mustKeep is for leases that must not be lost.
func mustKeep(t *testing.T) func() { return func() { t.Error("Lost was called") } }

// shared is for the tests that neither count nor break anything in the server itself.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }
