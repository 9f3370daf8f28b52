package sim

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which reports every connection that is lost
	os.Exit(m.Run())
}

// few are for every run of the tests; `make sim` runs a thousand.
func few() uint64 { return uint64(expect.Samples(10, 50)) }

func TestNoSeedBreaksAPromise(t *testing.T) {
	for seed := range few() {
		if r := Run(t, seed); len(r.Wrong) > 0 {
			t.Fatalf("seed %d: %q\n%s", seed, r.Wrong, r.Journal)
		}
	}
}

// byHand is a cache as many write it.
type byHand struct {
	rdb  *redis.Client
	load load
}

func (h byHand) key(row int) string { return "row:" + strconv.Itoa(row) }

func (h byHand) get(ctx context.Context, row int) (int64, error) {
	if v, err := h.rdb.Get(ctx, h.key(row)).Int64(); err == nil {
		return v, nil
	}
	v, err := h.load(ctx, row)
	_ = h.rdb.Set(ctx, h.key(row), v, 0).Err() // it is loaded again
	return v, err
}

func (h byHand) getMany(ctx context.Context, rows []int) (map[int]int64, error) {
	got := make(map[int]int64)
	for _, row := range rows {
		got[row], _ = h.get(ctx, row) // none fails
	}
	return got, nil
}

func (h byHand) invalidate(ctx context.Context, rows []int) (err error) {
	for _, row := range rows {
		err = errors.Join(err, h.rdb.Del(ctx, h.key(row)).Err())
	}
	return err
}

func (h byHand) invalidateTags(ctx context.Context, tags ...int) (err error) {
	for _, tag := range tags {
		err = errors.Join(err, h.invalidate(ctx, tagged(tag)))
	}
	return err
}

// Each row has one of the tags.
func (h byHand) invalidateAll(ctx context.Context, _ bool) error { return h.invalidateTags(ctx, 0, 1) }

func (h byHand) update(ctx context.Context, row int, write func(context.Context) error) error {
	return errors.Join(write(ctx), h.invalidate(ctx, []int{row}))
}

func (h byHand) put(ctx context.Context, row int, write func(context.Context) (int64, error)) error {
	_, err := write(ctx)
	return errors.Join(err, h.invalidate(ctx, []int{row}))
}

func (h byHand) transact(ctx context.Context, rows, tags []int, write body) error {
	for _, tag := range tags {
		rows = append(rows, tagged(tag)...)
	}
	var mu sync.Mutex // some are named at the same time
	err := write(ctx, func(more ...int) error {
		mu.Lock()
		defer mu.Unlock()
		rows = append(rows, more...)
		return nil
	})
	return errors.Join(err, h.invalidate(ctx, rows))
}

func (h byHand) warm(ctx context.Context, rows []int) error {
	_, err := h.getMany(ctx, rows)
	return err
}

func (h byHand) serve(bool) {}

func (h byHand) close() error { return nil }

func TestACacheByHandIsFoundWrong(t *testing.T) {
	for seed := range uint64(50) {
		r := run(t, seed, func(rdb *redis.Client, _ plan, _ string, load load) (store, error) { return byHand{rdb, load}, nil })
		if len(r.Wrong) > 0 {
			t.Logf("seed %d: %q", seed, r.Wrong)
			return
		}
	}
	t.Error("nothing is wrong with it")
}

func TestATierWithoutEchoesIsFoundWrong(t *testing.T) {
	for seed := range uint64(5000) {
		if p, _ := planOf(seed); !p.slow || !p.faults || p.lag() != maxLag {
			continue // that takes longer to find it
		}
		r := run(t, seed, func(rdb *redis.Client, p plan, name string, load load) (store, error) {
			p.maxLag = -1
			return openGuarded(rdb, p, name, load)
		})
		if len(r.Wrong) > 0 {
			t.Logf("seed %d: %q", seed, r.Wrong)
			return
		}
	}
	t.Error("nothing is wrong with it")
}

// unproved stores what it has loaded since it invalidated a row once more, whatever came in between.
type unproved struct {
	store
	rdb *redis.Client
}

func (u unproved) invalidate(ctx context.Context, rows []int) error {
	return errors.Join(u.store.invalidate(ctx, rows), u.storeAgain(ctx, rows))
}

func (u unproved) update(ctx context.Context, row int, write func(context.Context) error) error {
	err := u.store.update(ctx, row, write)
	_ = u.storeAgain(ctx, []int{row}) // always nil
	return err
}

func (u unproved) storeAgain(ctx context.Context, rows []int) error {
	for _, row := range rows {
		if _, failed := u.get(ctx, row); failed != nil || sleep(ctx, longestLoad) != nil { // until it is stored
			continue
		}
		key := "sim:{row:" + strconv.Itoa(row) + "}"
		entry, failed := u.rdb.Get(ctx, key).Bytes()
		if failed == nil && sleep(ctx, longestPause) == nil {
			_ = u.rdb.Set(ctx, key, entry, 0).Err() // or the old one stays
		}
	}
	return nil
}

func TestAStoreWithoutItsProofIsFoundWrong(t *testing.T) {
	for seed := range uint64(500) {
		if p, _ := planOf(seed); p.patient { // those expire soon
			continue
		}
		r := run(t, seed, func(rdb *redis.Client, p plan, name string, load load) (store, error) {
			g, err := openGuarded(rdb, p, name, load)
			return unproved{g, rdb}, err
		})
		if len(r.Wrong) > 0 {
			t.Logf("seed %d: %q", seed, r.Wrong)
			return
		}
	}
	t.Error("nothing is wrong with it")
}
