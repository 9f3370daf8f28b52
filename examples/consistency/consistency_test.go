package main

import (
	"context"
	"crypto/rand"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func newDB(t *testing.T) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// duel is a reader and a writer in two instances.
type duel struct {
	t             *testing.T
	db            *prices
	reads, writes shop
	prefix        string
	hasRead       chan struct{} // the reader has asked the database, and waits
	answer        chan struct{} // for this
	read          chan int64    // what it read
}

func newDuel(t *testing.T, p pattern) *duel {
	t.Helper()
	db, err := openPrices(t.Context(), newDB(t), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := &duel{t: t, db: db, prefix: rand.Text(), hasRead: make(chan struct{}), answer: make(chan struct{}), read: make(chan int64, 1)}
	var asked atomic.Bool
	db.hasRead = func() {
		if !asked.Swap(true) { // only the first is held up
			d.hasRead <- struct{}{}
			<-d.answer
		}
	}
	d.reads, d.writes = d.open(p, db), d.open(p, db)
	return d
}

func (d *duel) open(p pattern, db *prices) shop {
	d.t.Helper()
	s, err := p.open(shared.Client(d.t), db, d.prefix)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			d.t.Error(err)
		}
	})
	return s
}

func (d *duel) beginRead() {
	go func() { // owner: the test; stop: d.answer; joined by endRead
		cents, err := d.reads.Price(context.Background(), 1)
		if err != nil {
			d.t.Error(err)
		}
		d.read <- cents
	}()
	<-d.hasRead
}

func (d *duel) endRead() int64 {
	close(d.answer)
	return <-d.read
}

func (d *duel) raise() int64 {
	d.t.Helper()
	cents, err := d.writes.Raise(d.t.Context(), 1)
	if err != nil {
		d.t.Fatal(err)
	}
	return cents
}

func (d *duel) expectPrice(want int64) {
	d.t.Helper()
	for _, s := range []shop{d.reads, d.writes} {
		if got, err := s.Price(d.t.Context(), 1); got != want || err != nil {
			d.t.Errorf("the price is %d, %v, want %d", got, err, want)
		}
	}
}

func TestAReaderThatAWriteOvertakesLeavesTheOldPriceBehind(t *testing.T) {
	t.Parallel()
	d := newDuel(t, pattern{open: openDeleteAfterWrite})
	d.beginRead()
	d.raise()
	d.endRead()
	d.expectPrice(1000)
}

func TestASecondDeleteTakesTheOldPriceAwayFromAFasterReaderOnly(t *testing.T) {
	t.Parallel()
	for _, faster := range []bool{true, false} {
		d := newDuel(t, pattern{open: openDelayedDoubleDelete})
		writer := d.writes.(delayedDoubleDelete)
		writer.delay = time.Millisecond
		if faster {
			writer.delay = 100 * time.Millisecond // the reader stores sooner, or else the price is fresh all the same
		}
		d.writes = writer
		d.beginRead()
		d.raise()
		if faster {
			d.endRead()
			writer.tasks.Wait()
			d.expectPrice(1001)
		} else {
			writer.tasks.Wait()
			d.endRead()
			d.expectPrice(1000)
		}
	}
}

func TestAGuardDoesNotStoreWhatAWriteHasOvertaken(t *testing.T) {
	t.Parallel()
	for _, p := range []pattern{{open: openInvalidating}, {open: openUpdating}} {
		d := newDuel(t, p)
		d.beginRead()
		d.raise()
		if got := d.endRead(); got != 1000 { // it began before the write did
			t.Errorf("the overtaken reader got %d", got)
		}
		d.expectPrice(1001)
	}
}

func TestAReaderBeforeTheCommitStoresTheOldPriceUnlessAnIntentStands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern
		want int64
	}{
		{pattern{open: openCommittingLate}, 1000},
		{pattern{open: openIntending}, 1001},
	} {
		d := newDuel(t, c.pattern)
		d.db.hasRead = func() {} // nobody is held up
		d.db.commits = func() { d.expectPrice(1000) }
		d.raise()
		d.expectPrice(c.want)
	}
}

func TestAReadLockHoldsOffTheWriter(t *testing.T) {
	t.Parallel()
	d := newDuel(t, pattern{open: openReadLocking})
	locks, err := rwlock.New(shared.Client(t), rwlock.Config{RedisTimeout: redistest.Patience, Prefix: d.prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	d.beginRead()
	raised := make(chan int64, 1)
	go func() { // owner: the test; stop: it ends when the reader does; joined below
		cents, err := d.writes.Raise(context.Background(), 1)
		if err != nil {
			t.Error(err)
		}
		raised <- cents
	}()
	redistest.Await(t, "the writer is queued", func() bool {
		info, err := locks.Inspect(t.Context(), priceKey(1))
		return err == nil && info.WaitingWriters == 1
	})
	if got := d.endRead(); got != 1000 {
		t.Errorf("the reader got %d", got)
	}
	if got := <-raised; got != 1001 {
		t.Errorf("the writer got %d", got)
	}
	d.expectPrice(1001)
}

func TestTheLedgerCountsReadsThatMissedAnUpdate(t *testing.T) {
	t.Parallel()
	l := newLedger()
	early := l.reading(1)
	l.updated(1, 1002, time.Now())
	l.updated(1, 1001, time.Now()) // returned later, and is older
	late, other := l.reading(1), l.reading(2)
	early(1000)
	other(1000)
	if l.stale != 0 {
		t.Errorf("%d stale reads, want 0: none began after its price had changed", l.stale)
	}
	late(1001)
	l.reading(1)(1002)
	if l.stale != 1 || l.longest <= 0 || len(l.reads) != 4 || len(l.updates) != 2 {
		t.Errorf("%d stale for %v, %d reads, %d updates", l.stale, l.longest, len(l.reads), len(l.updates))
	}
}

func TestTheProgramKeepsItsPromises(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	var out, problems strings.Builder
	args := strings.Fields("-duration 250ms -products 2")
	if code := new(settings).program().Execute(t.Context(), args, &out, &problems); code != 0 {
		t.Errorf("exit code %d: %s", code, problems.String())
	}
	for _, p := range patterns {
		if !strings.Contains(out.String(), p.name) {
			t.Errorf("no %q in the output:\n%s", p.name, out.String())
		}
	}
}

func TestABrokenPromiseIsAnError(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.stale = 3
	var out strings.Builder
	err := report(&out, []result{{pattern: pattern{name: "Guard", promises: true}, ledger: l}, {pattern{name: "by hand"}, l, 0}})
	if err == nil || err.Error() != "NOT AS PROMISED: Guard: 3 stale reads" {
		t.Errorf("error is %v", err)
	}
}

func TestABadFlagIsNamed(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-products 0", "-duration 1ms", "-between 0", "-query 2s"} {
		var problems strings.Builder
		new(settings).program().Execute(t.Context(), strings.Fields(args), &problems, &problems)
		if flag := strings.Fields(args)[0]; !strings.HasPrefix(problems.String(), "consistency: "+flag+": ") {
			t.Errorf("%q: it says %q", args, problems.String())
		}
	}
}
