package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const (
	rowTags = 64
	several = 512 // are invalidated together
	some    = 64  // are read together
)

func TestChildThatReadsOrRevokes(t *testing.T) {
	if !redistest.IsChild(t) {
		return
	}
	r := newRevoking(t)
	if os.Getenv("ROLE") == "reader" {
		r.read()
	} else {
		r.revoke()
	}
	_, _ = r.guard.Close(), r.rdb.Close() // always nil; all is done
}

// revoking is a process that reads, and has a tier, or that invalidates, and has none.
type revoking struct {
	*testing.T
	ledger *ledger
	place  int
	lag    time.Duration // MaxLag
	bound  time.Duration // what is promised here
	rdb    redis.UniversalClient
	single bool // it invalidates one key at a time, so that what is lost is not made good at once
	guard  *cacheguard.Guard
	rows   *cacheguard.Cache[int, int64]
}

func newRevoking(t *testing.T) *revoking {
	r := &revoking{T: t, ledger: openLedger(t, os.Getenv("LEDGER")), single: os.Getenv("SINGLE") != ""}
	var errs [6]error
	r.place, errs[0] = strconv.Atoi(os.Getenv("PLACE"))
	r.lag, errs[1] = time.ParseDuration(os.Getenv("LAG"))
	r.bound, errs[5] = time.ParseDuration(cmp.Or(os.Getenv("BOUND"), os.Getenv("LAG")))
	replicas, err := strconv.Atoi(cmp.Or(os.Getenv("REPLICAS"), "0"))
	errs[2] = err
	r.rdb = redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: strings.Split(os.Getenv("ADDRS"), ","), MasterName: os.Getenv("MASTER"), IsClusterMode: os.Getenv("CLUSTER") != "",
	})
	if os.Getenv("REFUSING") != "" {
		redistest.WithoutPublish(r.rdb.(*redis.Client))
	}
	if os.Getenv("REFUSING") == "mistaken" {
		r.rdb.AddHook(plainEchoes{r.rdb})
	}
	if os.Getenv("UNNUMBERED") != "" && os.Getenv("ROLE") != "reader" { // whose echoes would look like notices
		r.rdb.AddHook(unnumbered{})
	}
	cfg := cacheguard.Config{Prefix: "revoked", TTL: time.Hour, LeaseTTL: lease, Replicas: replicas, Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventGet, noted)}}
	kind := cacheguard.CacheConfig[int, int64]{
		Name: "row", Load: r.load, Tags: func(row int, _ int64) []string { return []string{tagOfRow(row)} },
	}
	if os.Getenv("ROLE") == "reader" {
		cfg.Local = cacheguard.LocalConfig{MaxEntries: 2 * revocable, TTL: 30 * time.Minute, MaxLag: r.lag}
	}
	r.guard, errs[3] = cacheguard.New(r.rdb.(cacheguard.Redis), cfg)
	r.rows, errs[4] = cacheguard.NewCache(r.guard, kind)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return r
}

func tagOfRow(row int) string { return fmt.Sprint("tag", row%rowTags) }

// noted is the hook that tells outcomes.
func noted(ctx context.Context, e cacheguard.Event) {
	if all, ok := ctx.Value(outcomesKey{}).(*outcomes); ok {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.all[e.Key] = e.Outcome
	}
}

// load reads the database. At times that takes a while.
func (r *revoking) load(_ context.Context, row int) (int64, error) {
	version := r.ledger.rows[row].Load()
	if rand.N(8) == 0 {
		<-time.After(rand.N(20 * time.Millisecond))
	}
	return version, nil
}

func (r *revoking) read() {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { // owner: the test; stop: the ledger says so; joined below
			for !r.ledger.stop.Load() {
				r.look()
				<-time.After(rand.N(2 * time.Millisecond))
			}
		})
	}
	all.Wait()
}

// look reads one row, or many.
func (r *revoking) look() {
	ctx, all := withOutcomes(context.Background())
	rows := []int{rand.N(revocable)}
	switch rand.N(4) {
	case 0:
		rows = someRows(some)
	case 1:
		rows[0] = mortal
	}
	from := mono()
	found, err := r.get(ctx, rows)
	if err != nil {
		r.Errorf("%v", err) // a load never fails
	}
	for row, version := range found {
		how := all.of(r.rows.Key(row))
		if age := r.ledger.judge(r.place, row, how == string(cacheguard.Local), r.bound, from, version); age != "" {
			fmt.Printf("%s: reader %d with %v: row %d, version %d, %s, which had been invalidated for %s\n",
				time.Now().Format(time.StampMicro), r.place, r.lag, row, version, how, age)
		}
	}
}

func (r *revoking) get(ctx context.Context, rows []int) (map[int]int64, error) {
	if len(rows) > 1 {
		return r.rows.GetMany(ctx, rows)
	}
	version, err := r.rows.Get(ctx, rows[0])
	return map[int]int64{rows[0]: version}, err
}

func (r *revoking) revoke() {
	for n := 0; !r.ledger.stop.Load(); n++ {
		change := rand.N(1000)
		if r.single {
			change = max(change, 84)
		}
		switch {
		case n > 0 && r.ledger.dies[r.place].Load():
			r.die()
		case n > 0 && change < 40:
			r.change(someRows(several), func(ctx context.Context, rows []int) error { return r.rows.Invalidate(ctx, rows...) })
		case change < 80:
			tag := rand.N(rowTags)
			r.change(rowsOf(tag), func(ctx context.Context, _ []int) error { return r.guard.InvalidateTags(ctx, tagOfRow(tag)) })
		case change == 80:
			r.change(rowsOf(-1), func(ctx context.Context, _ []int) error { return r.rows.InvalidateAll(ctx) })
		case change < 84:
			<-time.After(rand.N(4 * time.Second)) // what it last said may be lost, and nothing follows
		case change < 300:
			r.written(func(ctx context.Context, row int, write func()) error {
				return r.rows.Update(ctx, row, func(context.Context) error { write(); return nil })
			})
		case change < 500:
			r.written(func(ctx context.Context, row int, write func()) error {
				return r.rows.Put(ctx, row, func(context.Context) (int64, error) { write(); return r.ledger.rows[row].Load(), nil })
			})
		case change < 700:
			r.written(func(ctx context.Context, row int, write func()) error {
				intent, err := r.guard.Intend(ctx, r.rows.Changes(row))
				if err != nil {
					return err
				}
				write()
				return intent.Done(ctx)
			})
		default:
			r.change(someRows(1), func(ctx context.Context, rows []int) error { return r.rows.Invalidate(ctx, rows...) })
		}
		<-time.After(rand.N(60 * time.Millisecond))
	}
}

func someRows(n int) (rows []int) {
	first := rand.N(revocable)
	for i := range n {
		rows = append(rows, (first+i)%revocable)
	}
	return rows
}

// rowsOf are those with a tag; -1: all.
func rowsOf(tag int) (rows []int) {
	for row := range revocable {
		if tag < 0 || row%rowTags == tag {
			rows = append(rows, row)
		}
	}
	return rows
}

// change writes rows, and invalidates them.
func (r *revoking) change(rows []int, invalidate func(ctx context.Context, rows []int) error) {
	versions := make([]int64, len(rows))
	for i, row := range rows {
		versions[i] = r.ledger.rows[row].Add(1)
	}
	r.returned(rows, versions, invalidate(context.Background(), rows))
}

// written is a change of one row that somebody announces to the library first.
func (r *revoking) written(change func(ctx context.Context, row int, write func()) error) {
	row, versions := rand.N(revocable), []int64{0}
	err := change(context.Background(), row, func() { versions[0] = r.ledger.rows[row].Add(1) })
	r.returned([]int{row}, versions, err)
}

func (r *revoking) returned(rows []int, versions []int64, err error) {
	if err != nil {
		r.ledger.failed[r.place].Add(int64(len(rows)))
		return
	}
	for i, row := range rows {
		r.ledger.returned[r.place][row].add(versions[i])
	}
	r.ledger.invalidated[r.place].Add(int64(len(rows)))
}

// die invalidates a row, and is killed when Redis has done so, before it hears of it.
func (r *revoking) die() {
	r.ledger.dying[r.place].Store(r.ledger.rows[mortal].Add(1))
	_ = r.rows.Invalidate(context.Background(), mortal) // there is no answer
	for !r.ledger.stop.Load() {
		<-time.After(10 * time.Millisecond)
	}
}
