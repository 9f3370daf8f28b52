package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestARedisOutageStopsThePositionAndNotTheFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	proxy := redistest.StartProxy(t, w.redis.Addr())
	w.guard, w.shop = w.newCache(proxy.Client(t))
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.catchUp(f)
	w.reads(1, "one")
	proxy.Refuse(true)
	w.exec("UPDATE products SET name = 'uno'")
	var written string
	w.ask(&written, "SELECT pg_current_wal_insert_lsn()::text")
	w.await("the feed has noticed", func() bool { return f.Stats().Err != nil })
	w.exec("UPDATE products SET name = 'eins'")
	w.await("what is behind shows", func() bool { return f.Stats().BehindBytes > 0 && f.Stats().Behind > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	expect.ErrorIs(t, f.CatchUp(ctx), context.DeadlineExceeded)
	var passed bool
	w.ask(&passed, "SELECT confirmed_flush_lsn >= $2::text::pg_lsn FROM pg_replication_slots WHERE slot_name = $1", w.slot, written)
	expect.Equal(t, "the position has passed what is not invalidated", passed, false)
	expect.Equal(t, "it still reads", f.Stats().Reading, true)
	proxy.Refuse(false)
	w.catchUp(f)
	w.reads(1, "eins")
	expect.Equal(t, "trouble", f.Stats().Err, nil)
	expect.Equal(t, "reconnects", f.Stats().Reconnects, 0)
	w.logs("changes wait to be invalidated")
	w.logs("changes are invalidated again")
}

func TestTooFewReplicasStopThePosition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	replica := redistest.StartReplica(t, w.redis)
	w.guard, w.shop = w.newCache(w.redis.Client(t), func(c *cacheguard.Config) { c.Replicas = 1 })
	f, _ := w.run(w.config())
	w.catchUp(f)
	replica.Pause()
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.await("the feed has noticed", func() bool { return errors.Is(f.Stats().Err, cacheguard.ErrNotReplicated) })
	replica.Resume()
	w.catchUp(f)
	expect.Equal(t, "trouble", f.Stats().Err, nil)
}

func TestNothingIsInvalidatedBeforeEveryReadSeesIt(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	w := newWorld(t, server.Address)
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.catchUp(f)
	w.exec("ALTER SYSTEM SET synchronous_standby_names = 'ghost'")
	w.exec("SELECT pg_reload_conf()")
	w.await("commits wait for a replica", func() bool {
		var names string
		w.ask(&names, "SHOW synchronous_standby_names")
		return names == "ghost"
	})
	committed := make(chan error, 1)
	go func() { // owner: the test; stop: the replica is not wanted any more; joined below
		_, err := w.pool.Exec(context.Background(), "UPDATE products SET name = 'uno'")
		committed <- err
	}()
	w.await("the commit is in the log, and nobody sees it", func() bool {
		var waits bool
		w.ask(&waits, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')")
		return waits
	})
	w.await("the log was sent", func() bool {
		var sent bool
		w.ask(&sent, "SELECT sent_lsn >= pg_current_wal_lsn() FROM pg_stat_replication WHERE application_name LIKE '%'||$1", w.slot)
		return sent
	})
	w.reads(1, "one") // the database has no other
	w.exec("ALTER SYSTEM RESET synchronous_standby_names")
	w.exec("SELECT pg_reload_conf()")
	expect.ErrorIs(t, <-committed)
	w.catchUp(f)
	w.reads(1, "uno")
}

func TestASlotThatWasDroppedInvalidatesTheKindsWholeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, stop := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.catchUp(f)
	w.reads(1, "one")
	stop()
	w.await("the slot is free", func() bool {
		var dropped int
		err := w.pool.QueryRow(t.Context(), "SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots WHERE slot_name = $1", w.slot).Scan(&dropped)
		return err == nil && dropped == 1
	})
	w.exec("UPDATE products SET name = 'uno'")
	f, _ = w.run(w.config())
	w.catchUp(f)
	w.reads(1, "uno")
	expect.Equal(t, "whole kinds", f.Stats().Whole, 1)
	w.logs("there is no slot")
}

func TestTheSlotIsThereOnlyWhenEverythingBeforeItIsInvalidated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	proxy := redistest.StartProxy(t, w.redis.Addr())
	w.guard, w.shop = w.newCache(proxy.Client(t))
	proxy.Refuse(true)
	f, stop := w.run(w.config())
	w.await("it has tried", func() bool { return f.Stats().Err != nil })
	stop()
	slots := -1
	w.await("the session has ended", func() bool {
		w.ask(&slots, "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE $1 || '%'", w.slot)
		return slots == 0
	})
	proxy.Refuse(false)
	f, _ = w.run(w.config())
	w.catchUp(f)
	expect.Equal(t, "whole kinds", f.Stats().Whole, 1)
}

func TestASlotThatHoldsBackTooMuchIsGivenUp(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	w := newWorld(t, server.Address)
	proxy := redistest.StartProxy(t, w.redis.Addr())
	w.guard, w.shop = w.newCache(proxy.Client(t))
	cfg := w.config()
	cfg.MaxRetained = minRetained
	f, _ := w.run(cfg)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.catchUp(f)
	w.reads(1, "one")
	proxy.Refuse(true)
	w.exec("UPDATE products SET name = 'uno'")
	w.await("the feed has noticed", func() bool { return f.Stats().Err != nil })
	grow := func() {
		w.exec("SELECT pg_switch_wal()")
		w.exec("UPDATE products SET name = name")
	}
	grow() // a segment has 16 MiB, of which the first one had some already
	grow()
	w.logs("more than half of MaxRetained")
	grow()
	w.logs("the slot is given up")
	w.await("the database keeps nothing", func() bool {
		var slots int
		w.ask(&slots, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1", w.slot)
		return slots == 0
	})
	proxy.Refuse(false)
	w.catchUp(f)
	w.reads(1, "uno")
	expect.Equal(t, "whole kinds, and at the first start", f.Stats().Whole, 2)
	w.logs("it held back more than MaxRetained")
}

func TestASlotThatTheDatabaseHasGivenUpIsMadeAgain(t *testing.T) {
	t.Parallel()
	server := startServer(t, "max_slot_wal_keep_size=1MB", "min_wal_size=32MB")
	w := newWorld(t, server.Address)
	f, stop := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.catchUp(f)
	w.reads(1, "one")
	stop()
	w.await("the slot is lost", func() bool {
		w.exec("SELECT pg_switch_wal()")
		w.exec("UPDATE products SET name = 'uno'")
		w.exec("CHECKPOINT")
		var status string
		w.ask(&status, "SELECT wal_status FROM pg_replication_slots WHERE slot_name = $1", w.slot)
		return status == "lost"
	})
	f, _ = w.run(w.config())
	w.catchUp(f)
	w.reads(1, "uno")
	w.logs("max_slot_wal_keep_size")
}

func TestATemporarySlotLeavesNothingAndInvalidatesTheKindsAtEachStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	cfg := w.config()
	cfg.Temporary = true
	f, stop := w.run(cfg)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.catchUp(f)
	w.reads(1, "one")
	w.exec("UPDATE products SET name = 'uno'")
	w.catchUp(f)
	w.reads(1, "uno")
	stop()
	w.await("there is no slot", func() bool {
		var slots int
		w.ask(&slots, "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE $1 || '%'", w.slot)
		return slots == 0
	})
	w.exec("UPDATE products SET name = 'eins'")
	f, _ = w.run(cfg)
	w.catchUp(f)
	w.reads(1, "eins")
	expect.Equal(t, "whole kinds", f.Stats().Whole, 1)
}

func TestThePositionOfAnIdleTableMovesWithTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec("CREATE TABLE other (n int)")
	f, _ := w.run(w.config())
	w.catchUp(f)
	before := w.position()
	w.exec("INSERT INTO other SELECT generate_series(1, 10000)")
	w.await("the position moves", func() bool {
		var moved bool
		w.ask(&moved, "SELECT confirmed_flush_lsn > $2::text::pg_lsn + 100000 FROM pg_replication_slots WHERE slot_name = $1", w.slot, before)
		return moved
	})
	expect.Equal(t, "rows", f.Stats().Rows, 0)
}

// TestAReader is a child process of TestAnotherInstanceTakesOver.
func TestAReader(t *testing.T) {
	if !redistest.IsChild(t) {
		t.Skip("it is for child processes")
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS")})
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: os.Getenv("SLOT")})
	if err != nil {
		t.Fatal(err)
	}
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{
		Name: "product", Load: func(context.Context, int64) (string, error) { return "", errors.New("nobody reads") },
	})
	if err != nil {
		t.Fatal(err)
	}
	tables := []cdc.Table{cdc.Rows("public.products", products, func(r cdc.Row) (int64, error) { return r.Int64("id") })}
	if os.Getenv("NOTES") != "" {
		tables = append(tables, cdc.Table{Name: "public.notes", Changed: (&world{shop: products}).noted})
	}
	f, err := New(Config{
		Conn: os.Getenv("ADDR"), Publication: "shop", Slot: os.Getenv("SLOT"), Guards: []*cacheguard.Guard{guard}, Tables: tables,
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		redistest.Await(t, "it reads", func() bool { return f.Stats().Reading })
		fmt.Println("reading")
	}()
	t.Log(f.Run(context.Background()))
}

func TestAnotherInstanceTakesOverFromOneThatWasKilledOrFrozen(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(*redistest.Process){"killed": (*redistest.Process).Kill, "frozen": (*redistest.Process).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			child := redistest.Child(t, "TestAReader", "ADDR="+w.addr, "REDIS="+w.redis.Addr(), "SLOT="+w.slot)
			child.Expect("reading")
			f, _ := w.run(w.config())
			w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
			w.catchUp(f)
			w.reads(1, "one")
			expect.Equal(t, "two read", f.Stats().Reading, false)
			disturb(child)
			w.exec("UPDATE products SET name = 'uno'")
			w.catchUp(f)
			w.reads(1, "uno")
			s := f.Stats()
			expect.Equal(t, "it reads", s.Reading, true)
			expect.Equal(t, "kinds invalidated whole by a takeover", s.Whole, 0)
		})
	}
}

func TestACutConnectionAndARestartedDatabaseAreSurvived(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	w := newWorld(t, server.Address)
	relay, err := distance.Start(server.Socket, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = relay.Close() })
	cfg := w.config()
	host, port, _ := strings.Cut(relay.Addr(), ":")
	cfg.Conn = fmt.Sprintf("host=%s port=%s user=test dbname=%s sslmode=disable", host, port, w.slot)
	f, _ := w.run(cfg)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.catchUp(f)
	w.reads(1, "one")
	relay.Break()
	w.exec("UPDATE products SET name = 'uno'")
	w.catchUp(f)
	w.reads(1, "uno")
	server.Kill()
	server.Start()
	w.await("the database answers", func() bool { return w.pool.Ping(t.Context()) == nil })
	w.exec("UPDATE products SET name = 'eins'")
	w.await("it has caught up", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return f.CatchUp(ctx) == nil
	})
	w.reads(1, "eins")
	expect.Equal(t, "whole kinds, at the first start", f.Stats().Whole, 1)
}
