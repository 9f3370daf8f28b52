package cacheguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
)

// The promises of what only a Cache has. All others are the same for the function Get.

// inventory is a source of many rows, as LoadMany wants it.
type inventory map[int]string

func (s inventory) load(_ context.Context, k int) (string, error) {
	switch v, ok := s[k]; {
	case !ok:
		return "", fmt.Errorf("row %d: %w", k, sql.ErrNoRows)
	case v == "gone":
		return "", fmt.Errorf("row %d: %w", k, errGone)
	default:
		return v, nil
	}
}

func (s inventory) loadMany(_ context.Context, ks []int) (map[int]string, error) {
	found := make(map[int]string)
	for _, k := range ks {
		if v, ok := s[k]; ok {
			found[k] = v
		}
	}
	return found, nil
}

func inventories(t *testing.T, f *fleet, s inventory) []*Cache[int, string] {
	t.Helper()
	return newCaches(t, f, CacheConfig[int, string]{
		Name: "row", Load: s.load, LoadMany: s.loadMany, NotFound: sql.ErrNoRows, Errors: map[string]error{"gone": errGone},
		Tags: func(k int, _ string) []string { return []string{fmt.Sprint("row:", k)} },
	})
}

// wantOf fails the test if the Cache returns something else, and waits until all is stored.
func (f *fleet) wantOf(c *Cache[int, string], k int, want string, wantErr error) {
	f.t.Helper()
	v, err := c.Get(context.Background(), k)
	f.stored()
	expect.Equal(f.t, fmt.Sprint("row ", k), v, want)
	expect.ErrorIs(f.t, err, wantErr)
}

func promiseNamedErrors(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	caches := inventories(t, f, inventory{1: "gone"})
	for _, c := range caches {
		_, err := c.Get(context.Background(), 7)
		f.stored()
		expect.Equal(t, "absence, loaded and remembered", err, sql.ErrNoRows)
		f.wantOf(c, 1, "", errGone)
	}
	expect.Equal(t, "loads of what is absent", f.events.count(Negative), 1)
}

func promiseNamedMany(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	s := inventory{1: "a", 2: "b"}
	caches := inventories(t, f, s)
	for _, c := range caches {
		got, err := c.GetMany(context.Background(), []int{1, 2, 3, 1})
		f.stored()
		expect.Equal(t, "error", err, nil)
		expect.Equal(t, "rows", fmt.Sprint(got), "map[1:a 2:b]")
	}
	expect.Equal(t, "loads", f.events.loads.Load(), 3) // one for each key
	s[1], s[3] = "a2", "c"
	expect.Equal(t, "Invalidate", caches[0].Invalidate(context.Background(), 1, 3), nil)
	f.wantOf(caches[1], 1, "a2", nil)
	f.wantOf(caches[1], 3, "c", nil)
	f.wantOf(caches[1], 2, "b", nil)
	expect.Equal(t, "loads after Invalidate", f.events.loads.Load(), 5)
}

func promiseNamedWrites(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	s := inventory{1: "a"}
	caches := inventories(t, f, s)
	for i := range 10 {
		here, there, value := caches[i%2], caches[1-i%2], fmt.Sprint("v", i)
		save := func(context.Context) (string, error) { s[1] = value; return value, nil }
		f.wantOf(there, 1, s[1], nil)
		if i%4 < 2 {
			loads := f.events.loads.Load()
			expect.Equal(t, "Put", here.Put(context.Background(), 1, save), nil)
			f.wantOf(there, 1, value, nil)
			f.wantOf(here, 1, value, nil)
			expect.Equal(t, "loads after a Put", f.events.loads.Load()-loads, 0)
			continue
		}
		expect.Equal(t, "Update", here.Update(context.Background(), 1, func(ctx context.Context) error {
			_, err := save(ctx)
			return err
		}), nil)
		f.wantOf(there, 1, value, nil)
		f.wantOf(here, 1, value, nil)
	}
}

func promiseNamedTags(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{RedisTimeout: bearing})
	s := inventory{1: "a", 2: "b"}
	caches := inventories(t, f, s)
	all := func() {
		t.Helper()
		for _, c := range caches {
			f.wantOf(c, 1, s[1], nil)
			f.wantOf(c, 2, s[2], nil)
		}
	}
	all()
	s[1] = "a2"
	mustInvalidateTags(t, f.guards[0], "row:1")
	all()
	s[1], s[2] = "a3", "b3"
	expect.Equal(t, "InvalidateAll", caches[1].InvalidateAll(context.Background()), nil)
	all()
	loads := f.events.loads.Load()
	all()
	expect.Equal(t, "loads of what is cached", f.events.loads.Load()-loads, 0)
}

// statusError is an error whose code callers look at, as those of RPC libraries and drivers.
type statusError struct{ code int }

func (e *statusError) Error() string { return "status " + strconv.Itoa(e.code) }

func statusOf(err error) int {
	if s := (*statusError)(nil); errors.As(err, &s) {
		return s.code
	}
	return 0
}

type statusCodec struct{}

func (statusCodec) EncodeError(err error) []byte {
	if code := statusOf(err); code != 0 {
		return []byte(strconv.Itoa(code))
	}
	return nil
}

func (statusCodec) DecodeError(data []byte) error {
	code, err := strconv.Atoi(string(data))
	if err != nil {
		return nil //nolint:nilerr // it is another version's
	}
	return &statusError{code}
}

// promiseTypedErrors: a caller that loads, one that waits for another instance's load, and one that asks after it see the same error.
func promiseTypedErrors(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{}).listening()
	started, end := make(chan struct{}, 9), make(chan struct{})
	caches := newCaches(t, f, CacheConfig[int, string]{
		Name: "row", ErrorCodec: statusCodec{}, Errors: map[string]error{"gone": errGone},
		IsNotFound: func(err error) bool { return statusOf(err) == 404 },
		Load: func(ctx context.Context, k int) (string, error) {
			started <- struct{}{}
			if k == 409 {
				select {
				case <-end:
				case <-ctx.Done():
				}
			}
			return "", fmt.Errorf("row %d: %w", k, errors.Join(errGone, &statusError{k}))
		},
	})
	results := make(chan error, 2)
	get := func(c *Cache[int, string]) { // owner: the test; ends with Get; joined by receiving
		_, err := c.Get(context.Background(), 409)
		results <- err
	}
	go get(caches[0])
	<-started
	go get(caches[1])
	f.awaitInboxes(protocol.LeaseKey(f.guards[1].keys.ValueKey(caches[1].Key(409))), 1)
	close(end)
	for _, when := range []string{"one of the two", "the other"} {
		err := <-results
		expect.Equal(t, when+": status", statusOf(err), 409)
		expect.ErrorIs(t, err, errGone)
	}
	f.stored()
	for i, c := range caches {
		_, err := c.Get(context.Background(), 404)
		f.stored()
		expect.Equal(t, fmt.Sprint("absence on instance ", i), err, ErrNotFound)
	}
}
