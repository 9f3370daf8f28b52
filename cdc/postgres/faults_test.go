package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestARedisOutageStopsThePositionAndNotTheFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	proxy := redistest.StartProxy(t, w.redis.Addr())
	w.Use(proxy.Client(t))
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	before := f.Stats().Reconnects
	proxy.Refuse(true)
	w.exec("UPDATE products SET name = 'uno'")
	var written string
	w.ask(&written, "SELECT pg_current_wal_insert_lsn()::text")
	w.Await("the feed has noticed", func() bool { return f.Stats().Err != nil })
	w.exec("UPDATE products SET name = 'eins'")
	w.Await("what is behind shows", func() bool { return f.Stats().BehindBytes > 0 && f.Stats().Behind > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	expect.ErrorIs(t, f.CatchUp(ctx), context.DeadlineExceeded)
	var passed bool
	w.ask(&passed, "SELECT confirmed_flush_lsn >= $2::text::pg_lsn FROM pg_replication_slots WHERE slot_name = $1", w.slot, written)
	expect.Equal(t, "the position has passed what is not invalidated", passed, false)
	expect.Equal(t, "it still reads", f.Stats().Reading, true)
	proxy.Refuse(false)
	w.CatchUp(f)
	w.Reads(1, "eins")
	expect.Equal(t, "trouble", f.Stats().Err, nil)
	expect.Equal(t, "reconnects", f.Stats().Reconnects, before)
	w.Logs("changes wait to be invalidated")
	w.Logs("changes are invalidated again")
}

func TestTooFewReplicasStopThePosition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	replica := redistest.StartReplica(t, w.redis)
	w.Use(w.redis.Client(t), func(c *cacheguard.Config) { c.Replicas = 1 })
	f, _ := w.run(w.config())
	w.CatchUp(f)
	replica.Pause()
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.Await("the feed has noticed", func() bool { return errors.Is(f.Stats().Err, cacheguard.ErrNotReplicated) })
	replica.Resume()
	w.CatchUp(f)
	expect.Equal(t, "trouble", f.Stats().Err, nil)
}

func TestNothingIsInvalidatedBeforeEveryReadSeesIt(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	w := newWorld(t, server.Address)
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.exec("ALTER SYSTEM SET synchronous_standby_names = 'ghost'")
	w.exec("SELECT pg_reload_conf()")
	t.Cleanup(func() { // a test that fails leaves a commit that waits, and the pool waits for that
		_, _ = w.pool.Exec(context.Background(), "ALTER SYSTEM RESET synchronous_standby_names")
		_, _ = w.pool.Exec(context.Background(), "SELECT pg_reload_conf()")
	})
	waiting := func(commits int) func() bool {
		return func() bool {
			var n int
			w.ask(&n, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
			return n == commits
		}
	}
	tried, committed := make(chan error, 1), make(chan error, 1)
	var enough atomic.Bool
	go func() { // owner: the test; stop: enough, and the replica is not wanted any more; joined below
		var err error
		for err == nil && !enough.Load() { // the server heeds its new settings when it gets to it
			_, err = w.pool.Exec(context.Background(), "SELECT pg_logical_emit_message(true, 'try', '')")
		}
		tried <- err
	}()
	w.Await("commits wait for a replica", waiting(1))
	enough.Store(true)
	go func() { // the same
		_, err := w.pool.Exec(context.Background(), "UPDATE products SET name = 'uno'")
		committed <- err
	}()
	w.Await("the commit is in the log, and nobody sees it", waiting(2))
	w.Await("the log was sent", func() bool {
		var sent bool
		w.ask(&sent, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE application_name LIKE '%'||$1 AND sent_lsn >= pg_current_wal_lsn())", w.slot)
		return sent
	})
	w.Reads(1, "one") // the database has no other
	w.exec("ALTER SYSTEM RESET synchronous_standby_names")
	w.exec("SELECT pg_reload_conf()")
	expect.ErrorIs(t, <-tried)
	expect.ErrorIs(t, <-committed)
	w.CatchUp(f)
	w.Reads(1, "uno")
}

func TestASlotThatWasDroppedInvalidatesTheKindsWholeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, stop := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	stop()
	w.Await("the slot is free", func() bool {
		var dropped int
		err := w.pool.QueryRow(t.Context(), "SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots WHERE slot_name = $1", w.slot).Scan(&dropped)
		return err == nil && dropped == 1
	})
	w.exec("UPDATE products SET name = 'uno'")
	f, _ = w.run(w.config())
	w.CatchUp(f)
	w.Reads(1, "uno")
	expect.Equal(t, "whole kinds", f.Stats().Whole, 1)
	w.Logs("there is no slot")
}

func TestTheSlotIsThereOnlyWhenEverythingBeforeItIsInvalidated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	proxy := redistest.StartProxy(t, w.redis.Addr())
	w.Use(proxy.Client(t))
	proxy.Refuse(true)
	f, stop := w.run(w.config())
	w.Await("it has tried", func() bool { return f.Stats().Err != nil })
	stop()
	slots := -1
	w.Await("the session has ended", func() bool {
		w.ask(&slots, "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE $1 || '%'", w.slot)
		return slots == 0
	})
	proxy.Refuse(false)
	f, _ = w.run(w.config())
	w.CatchUp(f)
	expect.Equal(t, "whole kinds", f.Stats().Whole, 1)
}

func TestASlotThatHoldsBackTooMuchIsGivenUp(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	w := newWorld(t, server.Address)
	proxy := redistest.StartProxy(t, w.redis.Addr())
	w.Use(proxy.Client(t))
	cfg := w.config()
	cfg.MaxRetained = minRetained
	f, _ := w.run(cfg)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	proxy.Refuse(true)
	w.exec("UPDATE products SET name = 'uno'")
	w.Await("the feed has noticed", func() bool { return f.Stats().Err != nil })
	grow := func() {
		w.exec("SELECT pg_switch_wal()")
		w.exec("UPDATE products SET name = name")
	}
	grow() // a segment has 16 MiB, and the first one had some already
	grow()
	w.Logs("more than half of MaxRetained")
	grow()
	w.Logs("the slot is given up")
	w.Await("the database keeps nothing", func() bool {
		var slots int
		w.ask(&slots, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1", w.slot)
		return slots == 0
	})
	proxy.Refuse(false)
	w.CatchUp(f)
	w.Reads(1, "uno")
	expect.Equal(t, "whole kinds, and at the first start", f.Stats().Whole, 2)
	w.Logs("it held back more than MaxRetained")
}

// pg_copy_logical_replication_slot shows the slot by its name, and by its plugin a moment later.
func TestASlotThatIsBeingMadeIsNobodyElses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, err := New(w.config())
	expect.ErrorIs(t, err)
	side, err := pgx.Connect(t.Context(), w.addr)
	expect.ErrorIs(t, err)
	defer func() { _ = side.Close(context.Background()) }()
	w.exec("CREATE SCHEMA moment; CREATE TABLE moment.pg_replication_slots AS " +
		"SELECT slot_name, plugin, database, active, wal_status, confirmed_flush_lsn, restart_lsn FROM pg_replication_slots WITH NO DATA")
	_, err = side.Exec(t.Context(), "SET search_path = moment, pg_catalog")
	expect.ErrorIs(t, err)
	for plugin, ours := range map[string]bool{"": true, "pgoutput": true, "test_decoding": false} {
		w.exec("TRUNCATE moment.pg_replication_slots")
		w.exec("INSERT INTO moment.pg_replication_slots (slot_name, plugin, database, active) VALUES ($1, $2, current_database(), true)", w.slot, plugin)
		at, err := f.look(t.Context(), side)
		expect.Equal(t, "plugin '"+plugin+"' is taken for ours", err == nil && at.there && at.active, ours)
	}
}

func TestATransactionThatWasLeftOpenIsToldFromAFeedThatIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Address)
	cfg := w.config()
	cfg.MaxRetained = 3 * minRetained
	f, _ := w.run(cfg)
	w.exec("CREATE TABLE other (n int)")
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	open, err := w.pool.Begin(t.Context())
	expect.ErrorIs(t, err)
	defer func() { _ = open.Rollback(context.Background()) }() // after the end of it, it does nothing
	if _, err := open.Exec(t.Context(), "SET application_name = 'forgotten'; INSERT INTO other VALUES (0)"); err != nil {
		t.Fatal(err)
	}
	grow := func(segments int) {
		for range segments {
			w.exec("SELECT pg_switch_wal()")
			w.exec("INSERT INTO other VALUES (1)")
			w.exec("CHECKPOINT") // which notes the transactions that run
		}
	}
	grow(4)
	w.Await("the transaction is named", func() bool {
		s := f.Stats()
		return strings.Contains(s.HeldBy, "forgotten") && s.HeldFor > 0 && s.Retained > minRetained && s.BehindBytes < 1<<20 && s.Err == nil
	})
	w.Logs("more than half of MaxRetained")
	grow(4)
	w.Logs("the slot is given up")
	w.Logs("the rest was held by a transaction")
	whole := f.Stats().Whole
	w.exec("UPDATE products SET name = 'uno'")
	w.Await("kinds are invalidated whole, although no slot can be made", func() bool { return f.Stats().Whole > whole && f.Stats().Err != nil })
	w.Reads(1, "uno")
	w.Logs("none can be made before the end of a transaction")
	expect.ErrorIs(t, open.Rollback(t.Context()))
	w.CatchUp(f)
	w.exec("UPDATE products SET name = 'eins'")
	w.CatchUp(f)
	w.Reads(1, "eins")
	w.Await("nobody holds the log back", func() bool { return f.Stats().HeldBy == "" })
}

func TestASlotThatTheDatabaseHasGivenUpIsMadeAgain(t *testing.T) {
	t.Parallel()
	server := startServer(t, "max_slot_wal_keep_size=1MB", "min_wal_size=32MB")
	w := newWorld(t, server.Address)
	f, stop := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	stop()
	w.Await("the slot is lost", func() bool {
		w.exec("SELECT pg_switch_wal()")
		w.exec("UPDATE products SET name = 'uno'")
		w.exec("CHECKPOINT")
		var status string
		w.ask(&status, "SELECT wal_status FROM pg_replication_slots WHERE slot_name = $1", w.slot)
		return status == "lost"
	})
	f, _ = w.run(w.config())
	w.CatchUp(f)
	w.Reads(1, "uno")
	w.Logs("max_slot_wal_keep_size")
}

func TestATemporarySlotLeavesNothingAndInvalidatesTheKindsAtEachStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	cfg := w.config()
	cfg.Temporary = true
	f, stop := w.run(cfg)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.exec("UPDATE products SET name = 'uno'")
	w.CatchUp(f)
	w.Reads(1, "uno")
	stop()
	w.Await("there is no slot", func() bool {
		var slots int
		w.ask(&slots, "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE $1 || '%'", w.slot)
		return slots == 0
	})
	w.exec("UPDATE products SET name = 'eins'")
	f, _ = w.run(cfg)
	w.CatchUp(f)
	w.Reads(1, "eins")
	expect.Equal(t, "whole kinds", f.Stats().Whole, 1)
}

func TestThePositionOfAnIdleTableMovesWithTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec("CREATE TABLE other (n int)")
	f, _ := w.run(w.config())
	w.CatchUp(f)
	before := w.position()
	w.exec("INSERT INTO other SELECT generate_series(1, 10000)")
	w.Await("the position moves", func() bool {
		var moved bool
		w.ask(&moved, "SELECT confirmed_flush_lsn > $2::text::pg_lsn + 100000 FROM pg_replication_slots WHERE slot_name = $1", w.slot, before)
		return moved
	})
	expect.Equal(t, "rows", f.Stats().Rows, 0)
}

func TestAnotherInstanceTakesOverFromOneThatWasKilledOrFrozen(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(*redistest.Process){"killed": (*redistest.Process).Kill, "frozen": (*redistest.Process).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			fleet := feedtest.StartFleet(w.Shop, 1, func() *redistest.Process { return w.child() })
			fleet.AwaitReader()
			f, _ := w.run(w.config())
			fleet.TakesOver(f, func(sql string) { w.exec(sql) }, disturb)
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
	w.CatchUp(f)
	w.Reads(1, "one")
	relay.Break()
	w.exec("UPDATE products SET name = 'uno'")
	w.CatchUp(f)
	w.Reads(1, "uno")
	server.Kill()
	server.Start()
	w.Await("the database answers", func() bool { return w.pool.Ping(t.Context()) == nil })
	w.exec("UPDATE products SET name = 'eins'")
	w.CatchUpInTheEnd(f)
	w.Reads(1, "eins")
	expect.Equal(t, "whole kinds, at the first start", f.Stats().Whole, 1)
}
