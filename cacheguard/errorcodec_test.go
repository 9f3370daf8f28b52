package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
)

// statusError is an error whose code callers look at, as those of RPC libraries and drivers.
type statusError struct{ code int }

func (e *statusError) Error() string { return "status " + strconv.Itoa(e.code) }

func statusOf(err error) int {
	if s, is := errors.AsType[*statusError](err); is {
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
