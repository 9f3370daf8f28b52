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

// Unwrap of *RedisError reads a field, as it does for *url.Error and *fs.PathError, and so does Error of *typedNil: a typed nil panics in both.
func TestNeitherATypedNilNorAPanicWithOneEndsTheProcess(t *testing.T) {
	if !redistest.IsChild(t) {
		child := redistest.Child(t, t.Name())
		for range 12 {
			child.Expect("alive true")
		}
		return
	}
	g := newGuard(t, shared.Client(t), Config{Prefix: "typednils", Gate: gateByContext, RedactError: func(error) string { return "redacted" }})
	n := 0
	for _, failure := range []error{(*RedisError)(nil), (*typedNil)(nil)} {
		for _, fail := range []func() error{func() error { return failure }, func() error { panic(failure) }} {
			c, err := NewCache(g, CacheConfig[int, thing]{
				Name: fmt.Sprint("thing", n), Load: func(context.Context, int) (thing, error) { return thing{}, fail() },
				LoadMany: func(context.Context, []int) (map[int]thing, error) { return nil, fail() },
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, read := range []func() error{
				func() error { _, err := c.Get(t.Context(), 1); return err },
				func() error { _, err := c.GetMany(t.Context(), []int{2, 3}); return err },
				func() error { _, err := c.Get(withoutCache(t.Context()), 4); return err },
			} {
				fmt.Println("alive", read() != nil)
			}
			n++
		}
	}
}
