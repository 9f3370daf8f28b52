package scenario

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// invalidation counts whether an old value survives a write and its invalidation.
func invalidation() Scenario {
	return Scenario{
		Name: "invalidation during a rebuild",
		About: "A load has read the old row; the row is written; the key is invalidated, on another instance where instances share " +
			"anything; the load ends. \"old at once\": tries in which the next Get returned the old value; \"old left\": those in which " +
			"any instance still did 150 ms later. A correctness test: anything but 0 serves wrong data until the TTL ends.",
		Metrics: []Metric{
			{Name: "old at once", Unit: "%", Better: Lower},
			{Name: "old left", Unit: "%", Better: Lower, Main: true},
		},
		Cases: []Case{{Name: "10 tries", Smoke: true, Entries: eachCache(rivals.Caches, runInvalidations)}},
	}
}

func runInvalidations(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	const tries = 10
	instances := 2
	if lib.Kind == rivals.Local {
		instances = 1 // the others would hear of nothing anyway
	}
	caches, err := openCaches(lib, rivals.Setup{Redis: e.Options(), TTL: Forever}, instances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(caches)) }()
	var atOnce, left atomic.Int64
	err = Together(ctx, tries, func(ctx context.Context, _ int) error {
		o := overtaken{key: NewKey(), reader: caches[0], writer: caches[instances-1]}
		return o.run(ctx, &atOnce, &left)
	})
	return Figures{
		"old at once": 100 * float64(atOnce.Load()) / tries, "old left": 100 * float64(left.Load()) / tries,
	}, err
}

// overtaken is a load that a write overtakes.
type overtaken struct {
	key            string
	reader, writer rivals.Cache
	row            atomic.Int64 // how often the row was written
}

func (o *overtaken) run(ctx context.Context, atOnce, left *atomic.Int64) error {
	reading, release := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() {
		close(reading)
		<-release
	})
	done := make(chan error, 1)
	go func() { // owner: run; ends when released; joined by receiving
		_, err := o.reader.Get(ctx, o.key, func(context.Context) ([]byte, error) {
			row := o.value()
			first()
			return row, nil
		})
		done <- err
	}()
	<-reading
	o.row.Add(1)
	err := o.writer.Invalidate(ctx, o.key)
	close(release)
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	Pause(ctx, 20*time.Millisecond) // libraries that store in the background have done so
	old, err := o.old(ctx, o.writer)
	if old {
		atOnce.Add(1)
	}
	Pause(ctx, 150*time.Millisecond)
	w, werr := o.old(ctx, o.writer)
	r, rerr := o.old(ctx, o.reader)
	if w || r {
		left.Add(1)
	}
	return errors.Join(err, werr, rerr, ctx.Err())
}

func (o *overtaken) value() []byte { return []byte{byte('0' + o.row.Load())} }

// old reports whether an instance returns what was there before the write.
func (o *overtaken) old(ctx context.Context, c rivals.Cache) (bool, error) {
	got, err := c.Get(ctx, o.key, func(context.Context) ([]byte, error) { return o.value(), nil })
	return err == nil && string(got) != string(o.value()), err
}
