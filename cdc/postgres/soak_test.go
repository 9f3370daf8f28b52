package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const (
	soakKeys    = 60
	soakWriters = 4
	soakRounds  = 6
)

// TestNothingIsOldAfterCatchUpWhateverWasWrittenAndKilled has writers with all kinds of statements, readers with tiers in memory, and readers of the
// log that die.
func TestNothingIsOldAfterCatchUpWhateverWasWrittenAndKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.guard, w.shop = w.newCache(w.redis.Client(t), func(c *cacheguard.Config) { c.Local = cacheguard.LocalConfig{MaxEntries: 1000} })
	w.exec("CREATE TABLE notes (id bigint PRIMARY KEY, product bigint)")
	w.exec("ALTER PUBLICATION shop ADD TABLE notes")
	w.exec("ALTER TABLE notes REPLICA IDENTITY FULL")
	f, _ := w.run(w.config(w.rows(), cdc.Table{Name: "public.notes", Changed: w.noted}))
	for round := range soakRounds {
		child := redistest.Child(t, "TestAReader", "ADDR="+w.addr, "REDIS="+w.redis.Addr(), "SLOT="+w.slot, "NOTES=1")
		stop, done := make(chan struct{}), new(sync.WaitGroup)
		var writers sync.WaitGroup
		for n := range soakWriters {
			writers.Go(func() { w.scribble(rand.New(rand.NewPCG(uint64(round), uint64(n)))) })
			done.Go(func() { w.readUntil(stop) })
		}
		w.disturb(round, child)
		writers.Wait()
		w.settledDown(f)
		w.nothingIsOld(round)
		close(stop)
		done.Wait()
		child.Kill()
	}
}

// disturb kills a reader of the log: the other process, a connection, the slot, or Redis.
func (w *world) disturb(round int, child *redistest.Process) {
	switch round % 4 {
	case 0:
		child.Kill()
	case 1:
		w.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1", w.slot)
	case 2:
		w.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1", w.slot)
		_, _ = w.pool.Exec(w.Context(), "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", w.slot) // unless it is read again
	case 3:
		w.redis.Restart()
	}
}

// noted are the changes of a note: those of its product.
func (w *world) noted(c cdc.Change) (changes cacheguard.Changes) {
	for _, row := range []cdc.Row{c.Old, c.New} {
		if !row.IsZero() {
			product, _ := row.Int64("product") // the feed has the error
			changes.Keys = append(changes.Keys, w.shop.Key(product))
		}
	}
	return changes
}

// scribble writes at random. What fails, as a key is there already or there is a deadlock, is rolled back.
func (w *world) scribble(random *rand.Rand) {
	id := func() int64 { return random.Int64N(soakKeys) }
	for n := range 40 {
		name := fmt.Sprint(random.Uint64())
		var sql string
		switch random.IntN(10) {
		case 0, 1:
			sql = fmt.Sprintf("INSERT INTO products VALUES (%d, 'a', '%s') ON CONFLICT (id) DO UPDATE SET name = excluded.name", id(), name)
		case 2:
			sql = fmt.Sprintf("UPDATE products SET name = '%s' WHERE id BETWEEN %d AND %d", name, id(), id())
		case 3:
			sql = fmt.Sprintf("DELETE FROM products WHERE id = %d", id())
		case 4:
			sql = fmt.Sprintf("UPDATE products SET id = %d WHERE id = %d", id(), id())
		case 5:
			sql = fmt.Sprintf("BEGIN; UPDATE products SET name = '%s'; ROLLBACK", name)
		case 6:
			sql = fmt.Sprintf("BEGIN; UPDATE products SET name = '%s' WHERE id = %d; SAVEPOINT s; DELETE FROM products; ROLLBACK TO s; DELETE FROM products WHERE id = %d; COMMIT", name, id(), id())
		case 7:
			sql = fmt.Sprintf("BEGIN; UPDATE products SET name = '%s' WHERE id = %d; INSERT INTO notes VALUES (%d, %d); COMMIT", name, id(), random.Int64(), id())
		case 8:
			sql = fmt.Sprintf("INSERT INTO products SELECT n, 'a', '%s' FROM generate_series(0, %d) n ON CONFLICT (id) DO UPDATE SET name = excluded.name", name, 3*soakKeys)
		case 9:
			if sql = "SELECT 1"; n%20 == 0 {
				sql = "TRUNCATE products"
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		conn, err := w.pool.Acquire(ctx)
		if err == nil {
			_, _ = conn.Conn().PgConn().Exec(ctx, sql).ReadAll() // see above
			_, _ = conn.Exec(ctx, "ROLLBACK")                    // likewise
			conn.Release()
		}
		cancel()
	}
}

func (w *world) readUntil(stop chan struct{}) {
	for id := int64(0); ; id = (id + 1) % soakKeys {
		select {
		case <-stop:
			return
		default:
			_, _ = w.shop.Get(context.Background(), id) // what counts is what the test reads afterwards
		}
	}
}

// settledDown returns when the feed has caught up, which takes several attempts while there is no slot.
func (w *world) settledDown(f *Feed) {
	w.await("it has caught up", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		return f.CatchUp(ctx) == nil
	})
}

// nothingIsOld reads by another instance, whose memory is empty, and by one that was there, which a message may reach later.
func (w *world) nothingIsOld(round int) {
	w.Helper()
	_, other := w.newCache(w.redis.Client(w))
	for id := range int64(soakKeys) {
		var want string
		err := w.pool.QueryRow(w.Context(), "SELECT coalesce((SELECT name FROM products WHERE id = $1), '')", id).Scan(&want)
		if err != nil {
			w.Fatal(err)
		}
		got, err := other.Get(w.Context(), id)
		if got != want {
			w.Errorf("round %d: product %d is %q (%v), want %q", round, id, got, err, want)
		}
		w.await("the tier in memory has it", func() bool {
			got, _ := w.shop.Get(w.Context(), id) // no value
			return got == want
		})
	}
}
