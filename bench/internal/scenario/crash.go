package scenario

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// crash has the instance that loads die.
func crash() Scenario {
	return Scenario{
		Name: "holder crash",
		About: "An instance that loads a key loses its connections for good, 200 ms after 4 others have asked for the key. The lease " +
			"is 1 s for whoever has one; a load of the others takes 20 ms. Times are from the crash; who had not waited at all " +
			"was done before.",
		Metrics: []Metric{
			{Name: "loads by the others", Better: Lower, Main: true},
			{Name: "next load begins", Unit: "ms", Better: Lower},
			{Name: "all answered", Unit: "ms", Better: Lower},
		},
		Cases: []Case{{
			Name: "lease of 1 s", Smoke: true, Slow: true, Rounds: 3,
			Entries: eachCache(inRedis(rivals.Caches), runCrash),
		}},
	}
}

// inRedis keeps the libraries that use Redis at all.
func inRedis(libs []rivals.CacheLibrary) (some []rivals.CacheLibrary) {
	for _, lib := range libs {
		if lib.Kind != rivals.Local {
			some = append(some, lib)
		}
	}
	return some
}

func runCrash(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	const others = 4
	setup := rivals.Setup{Redis: e.Options(), TTL: Forever, Lease: lease}
	caches, err := openCaches(lib, setup, others)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(caches)) }()
	if err := WarmUp(ctx, e.Redis, caches, 0); err != nil {
		return nil, err
	}
	h := holder{key: NewKey(), loading: make(chan struct{}), release: make(chan struct{}), done: make(chan struct{})}
	if err := h.open(lib, setup); err != nil {
		return nil, err
	}
	go h.hold(ctx) // owner: runCrash; stop: release; joined by close
	defer h.close()
	select {
	case <-h.loading:
	case <-time.After(TooLong):
		return nil, errors.New("the holder does not load")
	}
	crashed, done := make(chan time.Time, 1), make(chan struct{})
	go func() { // owner: runCrash; ends by itself; joined by receiving
		defer close(done)
		Pause(ctx, 200*time.Millisecond)
		crashed <- time.Now()
		h.cord.cut()
	}()
	db, value := newDatabase(20*time.Millisecond, 0), ValueOf(h.key, Kibibyte)
	var began atomic.Int64
	err = Together(ctx, others, func(ctx context.Context, i int) error {
		got, err := caches[i].Get(ctx, h.key, func(ctx context.Context) ([]byte, error) {
			began.CompareAndSwap(0, time.Now().UnixNano())
			return db.load(value)(ctx)
		})
		return Check(h.key, got, value, err)
	})
	answered := time.Now()
	<-done
	at := <-crashed
	return Figures{
		"loads by the others": float64(db.loads.Load()),
		"next load begins":    max(Millis(time.Unix(0, began.Load()).Sub(at)), 0),
		"all answered":        max(Millis(answered.Sub(at)), 0),
	}, err
}

// holder is the instance that dies.
type holder struct {
	key                    string
	cord                   cord
	cache                  rivals.Cache
	loading, release, done chan struct{}
}

func (h *holder) open(lib rivals.CacheLibrary, s rivals.Setup) (err error) {
	s.Dial = h.cord.dial
	h.cache, err = lib.Open(s)
	return err
}

func (h *holder) hold(ctx context.Context) {
	defer close(h.done)
	_, _ = h.cache.Get(ctx, h.key, func(context.Context) ([]byte, error) { // nobody is there to be told
		close(h.loading)
		<-h.release
		return nil, errCut
	})
}

func (h *holder) close() {
	close(h.release)
	<-h.done
	_ = h.cache.Close() // it has no Redis to say goodbye to
}
