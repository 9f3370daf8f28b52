package consistency

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// intentTerm is for how long an intent of a dead process stands.
const intentTerm = 2 * hastyLease

// arenas are the kinds of Redis that transactions are tested on, by the argument of openTransacting.
func arenas() map[string]func(*testing.T) (addrs []string) {
	return map[string]func(*testing.T) []string{
		"standalone": func(t *testing.T) []string { return []string{redistest.Start(t).Addr()} },
		"replicated": func(t *testing.T) []string {
			primary := redistest.Start(t)
			redistest.StartReplica(t, primary)
			return []string{primary.Addr()}
		},
		"cluster": func(t *testing.T) []string { return redistest.StartCluster(t, 0).Addrs() },
	}
}

func openTransacting(t *testing.T, arena string, addrs []string, source rows) guarded {
	t.Helper()
	cfg := cacheguard.Config{TTL: time.Hour, LeaseTTL: hastyLease, WaitTimeout: 2 * time.Second, RedisTimeout: 20 * time.Second, UpdateTimeout: inTime}
	if arena == "cluster" {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
		t.Cleanup(func() { _ = rdb.Close() })
		return openGuarded(t, rdb, cfg, source)
	}
	if arena == "replicated" {
		cfg.Replicas = 1
	}
	rdb := redis.NewClient(&redis.Options{Addr: addrs[0]})
	t.Cleanup(func() { _ = rdb.Close() })
	return openGuarded(t, rdb, cfg, source)
}

// Four processes write in transactions and read. Each is killed or paused at each step of a transaction, for longer than its intent lasts.
func TestNoGetReturnsAnOlderVersionThanATransactionThatWasDone(t *testing.T) {
	t.Parallel()
	for arena, start := range arenas() {
		t.Run(arena, func(t *testing.T) {
			t.Parallel()
			r := &transactions{T: t, arena: arena, addrs: start(t), database: startPostgres(t)}
			r.rows = openRows(t, r.database)
			r.rows.create(t)
			var harms []harm
			for _, step := range transactionSteps {
				harms = append(harms, harm{step, "kill"}, harm{step, "pause"})
			}
			for len(harms) > 0 {
				r.round(harms[:4])
				harms = harms[4:]
			}
			old, result := stale(r.history), check(promise, r.history)
			t.Logf("%d gets, %d stale; %d changes of rows", len(only(r.history, "get")), len(old), len(only(r.history, "updated")))
			if len(old) > 0 || result != porcupine.Ok {
				t.Errorf("%d stale reads, the first %+v; porcupine: %s", len(old), old[:min(1, len(old))], result)
			}
		})
	}
}

// harm says what happens to a process, and when.
type harm struct{ step, what string }

// transactions is a run.
type transactions struct {
	*testing.T
	arena    string
	addrs    []string
	database string
	rows     rows
	history  []event
}

// round starts a process for each harm, and ends with nobody at work and every intent expired.
func (r *transactions) round(harms []harm) {
	r.Helper()
	victims, logs := make([]*redistest.Process, len(harms)), make([]string, len(harms))
	for i, h := range harms {
		logs[i] = filepath.Join(r.TempDir(), rand.Text())
		victims[i] = redistest.Child(r, "TestChildThatWritesInTransactions", "ARENA="+r.arena, "ADDRS="+strings.Join(r.addrs, ","),
			"DATABASE_URL="+r.database+" application_name=child", "LOG="+logs[i], "STEP="+h.step)
	}
	var all sync.WaitGroup
	for i, h := range harms {
		all.Go(func() { r.harm(victims[i], h) })
	}
	all.Wait()
	for i, h := range harms {
		if h.what == "pause" {
			victims[i].WriteLine("stop")
			if err := victims[i].Wait(); err != nil {
				r.Error(err)
			}
		}
	}
	for _, log := range logs {
		r.history = append(r.history, readLog(r.T, log)...)
	}
	redistest.Await(r, "the database to notice that they are dead", func() bool { return r.rows.clients(r.T) == 0 })
	<-time.After(intentTerm) // then the intents have expired
	r.rest()
}

// harm does it when the process says that it is at its step.
func (r *transactions) harm(p *redistest.Process, h harm) {
	line, err := p.ReadLine(context.Background())
	var a, b int
	var versions [2]int64
	if n, _ := fmt.Sscan(line, &a, &versions[0], &b, &versions[1]); err != nil || n != 4 {
		r.Errorf("%q, %v", line, err)
		return
	}
	if h.what == "pause" {
		p.Pause()
		<-time.After(intentTerm * 3 / 2)
		p.Resume()
		p.WriteLine("go on")
		return
	}
	p.Kill()
	if h.step != "committed" {
		return
	}
	after := now() + int64(intentTerm)
	for i, key := range []int{a, b} { // nobody has promised more: another process's transaction may have overtaken it
		r.note(event{"updated", 0, key, versions[i], after, after})
	}
	<-time.After(intentTerm + 200*time.Millisecond) // others read meanwhile, and after that
}

var noting sync.Mutex // guards history where harms note

func (r *transactions) note(e event) {
	noting.Lock()
	defer noting.Unlock()
	r.history = append(r.history, e)
}

// rest compares cache and source.
func (r *transactions) rest() {
	r.Helper()
	c := openTransacting(r.T, r.arena, r.addrs, r.rows)
	for k := range keys {
		source, err := r.rows.read(r.Context(), keyOf(k))
		if err != nil {
			r.Fatal(err)
		}
		if got, err := c.get(r.Context(), keyOf(k)); err != nil || got != source {
			r.Errorf("%s: version %d (%v) is cached, %d is in the database", keyOf(k), got, err, source)
		}
	}
}

// inTime is enough for a transaction behind all others, on a busy machine.
const inTime = 5 * redistest.Patience

// Two rows, named in either order, by 16 writers of two processes' Guards: if anybody waited for anybody in a circle, a transaction would not
// end in time. TRANSACTIONS is how many.
func TestTransactionsInOppositeOrdersHaveNoDeadlock(t *testing.T) {
	t.Parallel()
	count, err := strconv.Atoi(os.Getenv("TRANSACTIONS"))
	if err != nil {
		count = 100
	}
	for arena, start := range arenas() {
		t.Run(arena, func(t *testing.T) {
			t.Parallel()
			addrs, database := start(t), startPostgres(t)
			source := openRows(t, database)
			source.create(t)
			caches := []guarded{openTransacting(t, arena, addrs, source), openTransacting(t, arena, addrs, source)}
			var left, failed atomic.Int64
			left.Store(int64(count))
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						ctx, cancel := context.WithTimeout(context.Background(), inTime)
						x := &transaction{cache: caches[i/2%2], named: [2]int{i % 2, 1 - i%2}, at: func(string, [2]int64) {}}
						if _, err := x.run(ctx); err != nil {
							failed.Add(1)
							t.Log(err)
						}
						cancel()
					}
				})
			}
			all.Wait()
			for k := range 2 {
				version, err := source.read(t.Context(), keyOf(k))
				if got, _ := caches[0].get(t.Context(), keyOf(k)); err != nil || got != version || version != int64(count)+1-failed.Load() {
					t.Errorf("%s: %d is cached, %d (%v) in the database after %d transactions, %d failed", keyOf(k), got, version, err, count, failed.Load())
				}
			}
			if failed.Load() > 0 {
				t.Errorf("%d of %d transactions failed", failed.Load(), count)
			}
		})
	}
}
