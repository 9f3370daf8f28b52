package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestAPanicWithErrNotFoundIsNoAbsence(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	_, err := Get(context.Background(), f.guards[0], "k", func(context.Context) (string, error) {
		panic(fmt.Errorf("must: %w", ErrNotFound))
	})
	if _, ok := errors.AsType[*PanicError](err); !ok {
		t.Errorf("first: %v", err)
	}
	expect.Equal(t, "absence stored", f.exists(f.value("k")), false)
}

func TestAnErrorThatPanicsDoesNotEndTheProcess(t *testing.T) {
	if redistest.IsChild(t) {
		rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
		g, _ := New(rdb, Config{Prefix: os.Getenv("PREFIX")})
		_, err := Get(context.Background(), g, "k", func(context.Context) (string, error) {
			var e *typedNil
			return "", e
		})
		fmt.Println("alive", err != nil)
		return
	}
	child := redistest.Child(t, t.Name(), "ADDR="+shared.Addr(), "PREFIX=typednil")
	child.Expect("alive true")
}

func TestAnErrorThatPanicsInUnwrapDoesNotEndTheProcess(t *testing.T) {
	if redistest.IsChild(t) {
		g := newGuard(t, shared.Client(t), Config{Prefix: "typednilis"})
		_, err := Get(context.Background(), g, "k", func(context.Context) (string, error) {
			var e *RedisError // has an Unwrap that reads a field, as *url.Error and *fs.PathError have
			return "", e
		})
		fmt.Println("alive", err != nil)
		return
	}
	child := redistest.Child(t, t.Name())
	child.Expect("alive true")
}

type typedNil struct{ s string }

func (e *typedNil) Error() string { return e.s }
