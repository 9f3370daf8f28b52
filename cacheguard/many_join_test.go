package cacheguard

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestOnJoinHearsOfTheKeysOfAGetManyToo(t *testing.T) {
	t.Parallel()
	joined := make(chan string, 2)
	g := newGuard(t, shared.Client(t), Config{Prefix: "test-" + rand.Text(), Observers: []Observer{On(EventJoin, func(_ context.Context, e Event) { joined <- e.Key })}})
	began, end := make(chan struct{}), make(chan struct{})
	first := make(chan error, 2)
	go func() {
		_, err := Get(t.Context(), g, "k", func(context.Context) (string, error) {
			close(began)
			<-end
			return "v", nil
		})
		first <- err
	}()
	<-began
	go func() {
		_, err := GetMany(t.Context(), g, []string{"other", "k"}, func(_ context.Context, missing []string) (map[string]string, error) {
			return map[string]string{missing[0]: "v"}, nil
		})
		first <- err
	}()
	expect.Equal(t, "joined", <-joined, "k")
	close(end)
	expect.Equal(t, "error", <-first, nil)
	expect.Equal(t, "error", <-first, nil)
	expect.Equal(t, "others that joined", len(joined), 0)
}
