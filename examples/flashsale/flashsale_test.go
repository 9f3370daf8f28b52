package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func newStage(t *testing.T, s settings) stage {
	t.Helper()
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	server, err := backends.Redis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqldb.Open(t.Context())
	if err != nil {
		t.Fatal(errors.Join(err, server.Close()))
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return stage{server, db, s}
}

func TestEachRightWaySellsWhatThereIsOnceToEachUser(t *testing.T) {
	for _, stock := range []int{30, 100} { // fewer than the users, and more
		st := newStage(t, settings{stock: stock, clients: 20, each: 3})
		for _, w := range rightWays {
			r, err := st.sell(t.Context(), w)
			sold := min(stock, 60)
			if err != nil || r.failed > 0 || r.sold != sold || r.left != stock-sold || r.oversold() != 0 || r.twice != 0 || !r.right() {
				t.Errorf("%s, of %d: %v, %d failed (%s): sold %d, left %d, oversold %d, twice %d", w.name, stock, err,
					r.failed, r.failure, r.sold, r.left, r.oversold(), r.twice)
			}
			if len(r.waits) != 60+60/4 || r.commands == 0 {
				t.Errorf("%s: %d answers, %d commands", w.name, len(r.waits), r.commands)
			}
		}
	}
}

// late is a sale by someone who has looked at the stock and is held up before the write.
type late struct {
	looked, resume chan struct{}
	sold           chan error
}

// sellLate begins such a sale in an instance of its own.
func sellLate(t *testing.T, open func(opening) (seller, error), o opening, user int) *late {
	t.Helper()
	l := &late{make(chan struct{}), make(chan struct{}), make(chan error, 1)}
	o.pause = func(context.Context) {
		l.looked <- struct{}{}
		<-l.resume
	}
	s := instanceOf(t, open, o)
	go func() { l.sold <- s.Sell(context.Background(), user) }() // owner: the test; stop: resume; joined by end
	<-l.looked
	return l
}

func (l *late) end() error {
	close(l.resume)
	return <-l.sold
}

func instanceOf(t *testing.T, open func(opening) (seller, error), o opening) seller {
	t.Helper()
	o.rdb = shared.Client(t)
	s, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestEachWrongWaySellsOneUnitTwice(t *testing.T) {
	t.Parallel()
	for _, w := range wrongWays {
		if !w.wrong {
			continue
		}
		o := opening{prefix: rand.Text(), lease: 10 * time.Millisecond, pause: func(context.Context) {}}
		other := instanceOf(t, w.open, o)
		if err := other.Put(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		first := sellLate(t, w.open, o, 1)
		if err := other.Sell(t.Context(), 1); err != nil { // waits for the lease, where there is one
			t.Errorf("%s: the second order: %v", w.name, err)
		}
		if err := first.end(); err != nil {
			t.Errorf("%s: the first order: %v", w.name, err)
		}
		if left, err := other.Left(t.Context()); left != 9 || err != nil {
			t.Errorf("%s: %d left, %v, want 9: two orders took one unit", w.name, left, err)
		}
	}
}

func TestADeleteWithoutTokenCheckUnlocksForOthers(t *testing.T) {
	t.Parallel()
	for checks, want := range map[bool]int64{false: 0, true: 1} {
		way := openBlindDelete
		if checks {
			way = openShortLease // which checks
		}
		o := opening{prefix: rand.Text(), lease: 10 * time.Millisecond}
		rdb := shared.Client(t)
		if err := rdb.Set(t.Context(), o.prefix+":stock", 10, 0).Err(); err != nil {
			t.Fatal(err)
		}
		first := sellLate(t, way, o, 1)
		o.lease = time.Hour
		second := sellLate(t, way, o, 2) // has the lock as soon as the first lease is over
		if err := first.end(); err != nil {
			t.Error(err)
		}
		if held, err := rdb.Exists(t.Context(), o.prefix+":handlock").Result(); held != want || err != nil {
			t.Errorf("with a token check %v: the second one's lock is there: %d, %v, want %d", checks, held, err, want)
		}
		if err := second.end(); err != nil {
			t.Error(err)
		}
	}
}

// saying is a seller that says the same to all.
type saying struct{ err error }

func (saying) Put(context.Context, int) error    { return nil }
func (s saying) Sell(context.Context, int) error { return s.err }
func (saying) Left(context.Context) (int, error) { return 0, nil }
func (saying) Close() error                      { return nil }

func TestTheShopSaysWhyThereIsNoOrder(t *testing.T) {
	st := newStage(t, settings{})
	table, err := openOrders(t.Context(), st.db)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		query string
		err   error
		want  int
	}{
		{"?user=1", nil, http.StatusCreated},
		{"?user=1", errAlready, http.StatusConflict},
		{"?user=1", errSoldOut, http.StatusGone},
		{"?user=1", errors.New("no Redis"), http.StatusServiceUnavailable},
		{"?user=one", nil, http.StatusBadRequest},
		{"", nil, http.StatusBadRequest},
	} {
		answer := httptest.NewRecorder()
		i := &instance{seller: saying{c.err}, orders: table}
		i.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders"+c.query, http.NoBody))
		if answer.Code != c.want {
			t.Errorf("%q, %v: %d, want %d", c.query, c.err, answer.Code, c.want)
		}
	}
	if sold, twice, err := table.count(t.Context()); sold != 1 || twice != 0 || err != nil {
		t.Errorf("%d orders, %d twice, %v, want 1", sold, twice, err)
	}
}

func TestARightSaleSellsAllAndNothingTwice(t *testing.T) {
	t.Parallel()
	right := result{answers: new(answers), stock: 10, users: 20, sold: 10}
	for name, c := range map[string]struct {
		change func(*result)
		want   bool
	}{
		"sold out":         {func(*result) {}, true},
		"few users":        {func(r *result) { r.users, r.sold, r.left = 4, 4, 6 }, true},
		"sold too many":    {func(r *result) { r.sold = 11 }, false},
		"counted too few":  {func(r *result) { r.left = 1 }, false},
		"twice to someone": {func(r *result) { r.twice = 1 }, false},
		"unsold":           {func(r *result) { r.sold, r.left = 9, 1 }, false},
		"failed":           {func(r *result) { r.sold, r.left, r.answers = 9, 0, &answers{failed: 1} }, true},
	} {
		r := right
		c.change(&r)
		if r.right() != c.want {
			t.Errorf("%s: right %v, want %v", name, r.right(), c.want)
		}
	}
}

func TestTheProgramComparesTheWays(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	for args, ways := range map[string][]way{"-short": rightWays, "-short -wrong": wrongWays} {
		var out, problems strings.Builder
		if code := new(settings).program().Execute(t.Context(), strings.Fields(args), &out, &problems); code != 0 {
			t.Errorf("%s: exit code %d: %s\n%s", args, code, problems.String(), out.String())
		}
		for _, w := range ways {
			if !strings.Contains(out.String(), w.name) {
				t.Errorf("%s: no %q in the output:\n%s", args, w.name, out.String())
			}
		}
	}
}

func TestTheProgramComparesLocks(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	for lock, want := range map[string]string{"fair": "mutex, fair", "quorum": "Quorum of 3", "postgres": "consensus/postgres", "none": "no lock"} {
		var out, problems strings.Builder
		if code := new(settings).program().Execute(t.Context(), []string{"-short", "-lock", lock}, &out, &problems); code != 0 {
			t.Errorf("%s: exit code %d: %s\n%s", lock, code, problems.String(), out.String())
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: no %q in the output:\n%s", lock, want, out.String())
		}
	}
}

func TestTheFiguresOfLocksAreAddedRoundByRound(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	file := filepath.Join(t.TempDir(), "sale.json")
	for range 2 {
		var out, problems strings.Builder
		if code := new(settings).program().Execute(t.Context(), []string{"-short", "-lock", "redis", "-json", file}, &out, &problems); code != 0 {
			t.Fatalf("exit code %d: %s\n%s", code, problems.String(), out.String())
		}
	}
	all, err := readFigures(file)
	if err != nil {
		t.Fatal(err)
	}
	sale := all.Scenarios[0].Cases[0]
	if len(sale.Rows) != 1 || len(sale.Rows[0].Rounds) != 2 || sale.Rows[0].Rounds[1]["orders"] <= 0 || sale.Rows[0].Rounds[1]["p99"] <= 0 || sale.Name != "150 units" {
		t.Errorf("%+v", sale)
	}
}

func TestABrokenPromiseIsAnError(t *testing.T) {
	t.Parallel()
	oversold := result{way: way{name: "mutex"}, answers: new(answers), stock: 1, users: 9, sold: 2, took: time.Second}
	var out strings.Builder
	if err := report(&out, []result{oversold}); err == nil || !strings.Contains(err.Error(), "NOT AS PROMISED: mutex") {
		t.Errorf("error is %v", err)
	}
	oversold.wrong = true
	if err := report(&out, []result{oversold}); err != nil {
		t.Errorf("a wrong way that fails: %v", err)
	}
}

func TestABadFlagIsNamed(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-stock 0", "-clients 0", "-clients 201", "-each 0", "-lock iron", "-json sale.json"} {
		var problems strings.Builder
		new(settings).program().Execute(t.Context(), strings.Fields(args), &problems, &problems)
		if flag := strings.Fields(args)[0]; !strings.HasPrefix(problems.String(), "flashsale: "+flag+": ") {
			t.Errorf("%q: it says %q", args, problems.String())
		}
	}
}
