package cas

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestASwapReplacesTheVersionItNamesAndNoOther(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.DeclaredKeys(t, shared.Client(t)), Config{})
	first := create(t, s, "k", "a")
	wantValue(t, s, "k", "a", first)
	second := mustSwap(t, s, "k", first, "b")
	wantValue(t, s, "k", "b", second)
	for _, old := range []Version{first, "", "cas1nonsense"} {
		_, err := Swap(t.Context(), s, "k", old, "c")
		expect.ErrorIs(t, err, ErrConflict)
	}
	wantValue(t, s, "k", "b", second)
}

func TestAValueThatWasChangedBackHasAnotherVersion(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.DeclaredKeys(t, shared.Client(t)), Config{})
	first := create(t, s, "k", "a")
	second := mustSwap(t, s, "k", first, "b")
	mustSwap(t, s, "k", second, "a")
	_, err := Swap(t.Context(), s, "k", first, "c")
	expect.ErrorIs(t, err, ErrConflict)
}

func TestADeleteRemovesTheVersionItNamesAndNoOther(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.DeclaredKeys(t, shared.Client(t)), Config{})
	first := create(t, s, "k", 1)
	second := mustSwap(t, s, "k", first, 2)
	expect.ErrorIs(t, Delete(t.Context(), s, "k", first), ErrConflict)
	wantValue(t, s, "k", 2, second)
	if err := Delete(t.Context(), s, "k", second); err != nil {
		t.Fatal(err)
	}
	_, _, err := Get[int](t.Context(), s, "k")
	expect.ErrorIs(t, err, ErrNotFound)
	expect.ErrorIs(t, Delete(t.Context(), s, "k", second), ErrConflict)
	create(t, s, "k", 3)
	if err := Delete(t.Context(), s, "k", ""); err == nil {
		t.Error("deleted without a version")
	}
}

func TestEveryKeyExpiresUnlessToldNotTo(t *testing.T) {
	t.Parallel()
	rdb := redistest.DeclaredKeys(t, shared.Client(t))
	for _, c := range []struct {
		ttl, least, most time.Duration
	}{
		{0, 23 * time.Hour, 24 * time.Hour},
		{time.Minute, 50 * time.Second, time.Minute},
		{-1, -1, -1}, // as PTTL says it
	} {
		s := newStore(t, rdb, Config{TTL: c.ttl})
		create(t, s, "k", "v")
		if got := rdb.PTTL(t.Context(), s.valueKey("k")).Val(); got < c.least || got > c.most {
			t.Errorf("TTL %v: the value has %v", c.ttl, got)
		}
		if got := rdb.PTTL(t.Context(), s.valueKey("k")+":recent").Val(); got <= 0 || got > recentFor {
			t.Errorf("TTL %v: the recent tokens have %v", c.ttl, got)
		}
	}
}

func TestWhatIsRememberedOfWritesIsBounded(t *testing.T) {
	t.Parallel()
	rdb := redistest.DeclaredKeys(t, shared.Client(t))
	s := newStore(t, rdb, Config{})
	s.recent = 16
	version := create(t, s, "k", 0)
	for i := range s.recent + 10 {
		version = mustSwap(t, s, "k", version, i)
	}
	if n := rdb.LLen(t.Context(), s.valueKey("k")+":recent").Val(); n != int64(s.recent) {
		t.Errorf("%d tokens are remembered", n)
	}
}

// Only repeated requests need what is forgotten.
func TestAVersionThatWasReplacedLongAgoIsAConflict(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.DeclaredKeys(t, shared.Client(t)), Config{})
	s.recent = 4
	old := create(t, s, "k", 0)
	version := old
	for i := range 2 * s.recent {
		version = mustSwap(t, s, "k", version, i)
	}
	redistest.Await(t, "a conflict", func() bool { // a slow reply may have the request repeated
		_, err := Swap(t.Context(), s, "k", old, -1)
		return errors.Is(err, ErrConflict)
	})
}

func TestAClosedOrNilStoreSaysSo(t *testing.T) {
	t.Parallel()
	closed := newStore(t, redistest.DeclaredKeys(t, shared.Client(t)), Config{})
	_ = closed.Close() // always nil
	_ = closed.Close() // always nil
	for _, c := range []struct {
		store *Store
		want  error
	}{{closed, ErrClosed}, {nil, errNilStore}} {
		_, _, err := Get[int](t.Context(), c.store, "k")
		expect.ErrorIs(t, err, c.want)
		_, err = Swap(t.Context(), c.store, "k", "", 1)
		expect.ErrorIs(t, err, c.want)
		expect.ErrorIs(t, Delete(t.Context(), c.store, "k", "v"), c.want)
		_, err = Update(t.Context(), c.store, "k", func(int, bool) (int, error) { return 1, nil })
		expect.ErrorIs(t, err, c.want)
	}
	var none *Store
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

func TestACallThatCannotSucceedIsNotMade(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.DeclaredKeys(t, shared.Client(t)), Config{})
	_, _, err := Get[int](t.Context(), s, "")
	expect.ErrorIs(t, err, errEmptyKey)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err = Swap(ctx, s, "k", "", 1)
	expect.ErrorIs(t, err, context.Canceled, why)
	if errors.Is(err, ErrUncertain) {
		t.Errorf("nothing was sent, and yet: %v", err)
	}
	_, err = Swap(t.Context(), s, "k", "", func() {})
	if err == nil || errors.Is(err, ErrUncertain) {
		t.Errorf("a function was encoded: %v", err)
	}
}
