package segment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestTakesNeverTakeMoreThanThereIs(t *testing.T) {
	t.Parallel()
	c := newStock(t, redistest.DeclaredKeys(t, shared.Client(t)), 4, 10)
	for range 10 {
		ok(t, c.Take(t.Context(), name, 1))
	}
	expect.ErrorIs(t, c.Take(t.Context(), name, 1), ErrShort)
	_, err := c.TakeUpTo(t.Context(), name, 1)
	expect.ErrorIs(t, err, ErrShort)
	wantTotal(t, c, 0)
}

func TestATakeGathersUnitsFromSeveralSegmentsOrTakesNone(t *testing.T) {
	t.Parallel()
	c := newStock(t, redistest.DeclaredKeys(t, shared.Client(t)), 4, 8)
	if left := lookAt(t, c).left; !slices.Equal(left, []int64{2, 2, 2, 2}) {
		t.Fatalf("the segments have %v", left)
	}
	ok(t, c.Take(t.Context(), name, 5))
	wantTotal(t, c, 3)
	expect.ErrorIs(t, c.Take(t.Context(), name, 4), ErrShort)
	wantTotal(t, c, 3)
	ok(t, c.Take(t.Context(), name, 3))
	wantTotal(t, c, 0)
}

func TestTakeUpToTakesWhatIsLeft(t *testing.T) {
	t.Parallel()
	c := newStock(t, redistest.DeclaredKeys(t, shared.Client(t)), 4, 10)
	for _, want := range []int64{7, 3} {
		if got, err := c.TakeUpTo(t.Context(), name, 7); got != want || err != nil {
			t.Errorf("took %d, %v; want %d", got, err, want)
		}
	}
	_, err := c.TakeUpTo(t.Context(), name, 7)
	expect.ErrorIs(t, err, ErrShort)
}

func TestWhatIsAddedCanBeTaken(t *testing.T) {
	t.Parallel()
	c := newStock(t, redistest.DeclaredKeys(t, shared.Client(t)), 4, 0)
	expect.ErrorIs(t, c.Take(t.Context(), name, 1), ErrShort)
	for range 10 {
		ok(t, c.Add(t.Context(), name, 3))
	}
	wantTotal(t, c, 30)
	ok(t, c.Take(t.Context(), name, 30))
	expect.ErrorIs(t, c.Add(t.Context(), "nothing", 1), ErrNotFound)
}

func TestANameIsCreatedOnce(t *testing.T) {
	t.Parallel()
	c := newStock(t, redistest.DeclaredKeys(t, shared.Client(t)), 4, 10)
	expect.ErrorIs(t, c.Create(t.Context(), name, 20), ErrExists)
	wantTotal(t, c, 10)
	expect.ErrorIs(t, c.Take(t.Context(), "nothing", 1), ErrNotFound)
	_, err := c.Total(t.Context(), "nothing")
	expect.ErrorIs(t, err, ErrNotFound)
	expect.ErrorIs(t, c.Rebalance(t.Context(), "nothing"), ErrNotFound)
}

func TestRebalanceLevelsTheSegments(t *testing.T) {
	t.Parallel()
	c := newStock(t, redistest.DeclaredKeys(t, shared.Client(t)), 4, 11)
	shift(t, c, 0, 3, 3)
	shift(t, c, 1, 3, 2)
	ok(t, c.Rebalance(t.Context(), name))
	if left := lookAt(t, c).left; !slices.Equal(left, []int64{3, 3, 3, 2}) {
		t.Errorf("the segments have %v", left)
	}
}

func TestAllSegmentsExpireAtOneMoment(t *testing.T) {
	t.Parallel()
	rdb := redistest.DeclaredKeys(t, shared.Client(t))
	for _, ttl := range []time.Duration{time.Minute, -1} {
		c := newCounter(t, rdb, Config{Segments: 4, TTL: ttl})
		ok(t, c.Create(t.Context(), name, 100))
		ok(t, c.Take(t.Context(), name, 1))
		ok(t, c.Add(t.Context(), name, 1))
		first := rdb.PExpireTime(t.Context(), c.key(name, 0)).Val()
		for i := range 4 {
			if at := rdb.PExpireTime(t.Context(), c.key(name, i)).Val(); at != first || (at > 0) != (ttl > 0) {
				t.Errorf("TTL %v: segment %d expires at %v, the first at %v", ttl, i, at, first)
			}
		}
		all, err := rdb.Keys(t.Context(), c.cfg.Prefix+":*").Result()
		ok(t, err)
		receipts := 0
		for _, key := range all {
			if strings.HasSuffix(key, ":segment") {
				continue
			}
			receipts++
			if left := rdb.PTTL(t.Context(), key).Val(); left <= 0 || left > keepMoveReceipt {
				t.Errorf("receipt %s has a TTL of %v", key, left)
			}
		}
		if receipts == 0 {
			t.Error("there are no receipts")
		}
	}
}

func TestAProcessLeavesAsManyReceiptsAsItHasTakesAtATime(t *testing.T) {
	t.Parallel()
	rdb := redistest.DeclaredKeys(t, shared.Client(t))
	c := newStock(t, rdb, 1, 100)
	for range 50 {
		ok(t, c.Take(t.Context(), name, 1))
	}
	receipts, err := rdb.Keys(t.Context(), c.cfg.Prefix+":*:segment:*").Result()
	if err != nil || len(receipts) != 1 {
		t.Errorf("%d receipts, %v", len(receipts), err)
	}
}

func TestAClosedOrNilCounterSaysSo(t *testing.T) {
	t.Parallel()
	closed := newCounter(t, redistest.DeclaredKeys(t, shared.Client(t)), Config{})
	_ = closed.Close() // always nil
	for _, c := range []struct {
		counter *Counter
		want    error
	}{{closed, ErrClosed}, {nil, errNilCounter}} {
		expect.ErrorIs(t, c.counter.Create(t.Context(), name, 1), c.want)
		expect.ErrorIs(t, c.counter.Take(t.Context(), name, 1), c.want)
		expect.ErrorIs(t, c.counter.Add(t.Context(), name, 1), c.want)
		expect.ErrorIs(t, c.counter.Rebalance(t.Context(), name), c.want)
		_, err := c.counter.Total(t.Context(), name)
		expect.ErrorIs(t, err, c.want)
		ok(t, c.counter.Close())
	}
}

func TestACallThatCannotSucceedIsNotMade(t *testing.T) {
	t.Parallel()
	c := newCounter(t, redistest.DeclaredKeys(t, shared.Client(t)), Config{})
	expect.ErrorIs(t, c.Take(t.Context(), "", 1), errEmptyName)
	for _, n := range []int64{0, -1, most + 1} {
		if err := c.Take(t.Context(), name, n); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("take %d: %v", n, err)
		}
	}
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	expect.ErrorIs(t, c.Take(ctx, name, 1), context.Canceled, why)
}
