package cacheguardtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
)

// amount encodes itself, and equals what has another encoding.
type amount struct{ Cents int }

func (a amount) MarshalText() ([]byte, error) { return fmt.Append(nil, a.Cents), nil }
func (a *amount) UnmarshalText(text []byte) error {
	_, err := fmt.Sscan(string(text)+"0", &a.Cents)
	return err
}
func (amount) Equal(amount) bool { return true }

// forgetful has a field for those who load it alone, says so, and is no fault: it encodes itself, and knows when two are equal.
type forgetful struct {
	Name string
	memo []string
}

func (f forgetful) MarshalText() ([]byte, error)     { return []byte(f.Name), nil }
func (f *forgetful) UnmarshalText(text []byte) error { f.Name = string(text); return nil }
func (f forgetful) Equal(other forgetful) bool       { return f.Name == other.Name }

// unreadable is a Codec that does not decode.
type unreadable struct{}

func (unreadable) Marshal(v any) ([]byte, error) { return json.Marshal(v) }
func (unreadable) Unmarshal([]byte, any) error   { return errors.New("no way back") }

func TestAValueThatDoesNotComeBackFailsTheTestAndIsNotStored(t *testing.T) {
	t.Parallel()
	type product struct {
		Name   string `json:"-"`
		Number string
	}
	for name, test := range map[string]struct {
		load  func(*cacheguardtest.Env) error
		want  string // empty: it comes back
		loads int
	}{
		"a field":            {gets(product{"a", "b"}, nil), "product.Name: it comes back otherwise", 2},
		"of an interface":    {gets[any](7, nil), "interface {}: a int comes back as a float64", 2},
		"bytes":              {gets(amount{7}, nil), "amount: it is encoded in other bytes", 2},
		"a Codec of a Cache": {gets(amount{0}, unreadable{}), "amount: it cannot be decoded: no way back", 2},
		"a Put":              {puts(product{"a", "b"}), "product.Name: it comes back otherwise", 1},
		"an amount":          {gets(amount{0}, nil), "", 1},
		"nothing but a memo": {gets(forgetful{"a", []string{"b"}}, nil), "", 1},
		"a string":           {gets("a\xff", unreadable{}), "", 1},
		"bytes as they are":  {gets([]byte("a\xff"), unreadable{}), "", 1},
		"a Put that returns": {puts(amount{0}), "", 0},
	} {
		var mu sync.Mutex
		var refused []string
		inner := &reporter{T: t}
		env := cacheguardtest.New(inner, cacheguard.Config{Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventUnstorable, func(_ context.Context, e cacheguard.Event) {
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, e.Key+": "+e.Err.Error())
		})}})
		expect.ErrorIs(t, test.load(env))
		env.Settle()
		expect.Equal(t, name+": loads", env.Loads("thing:1"), test.loads)
		inner.end()
		said := strings.Join(inner.errors, "\n")
		if test.want == "" {
			expect.Equal(t, name+": said", said, "")
			expect.Equal(t, name+": refused", len(refused), 0)
			continue
		}
		if len(inner.errors) != 1 || !strings.Contains(said, `"thing:1"`) || !strings.Contains(said, test.want) {
			t.Errorf("%s: %q, want %q", name, said, test.want)
		}
		if len(refused) == 0 || !strings.Contains(refused[0], "thing:1: ") || !strings.Contains(refused[0], test.want) {
			t.Errorf("%s: EventUnstorable has %q, want %q", name, refused, test.want)
		}
	}
}

func cacheOf[V any](env *cacheguardtest.Env, v V, codec cacheguard.Codec) (*cacheguard.Cache[int, V], error) {
	return cacheguard.NewCache(env.Guard, cacheguard.CacheConfig[int, V]{
		Name: "thing", Codec: codec, Load: func(context.Context, int) (V, error) { return v, nil },
	})
}

// gets gets the value once by itself, and once with another one.
func gets[V any](v V, codec cacheguard.Codec) func(*cacheguardtest.Env) error {
	return func(env *cacheguardtest.Env) error {
		c, err := cacheOf(env, v, codec)
		if err != nil {
			return err
		}
		_, err = c.Get(context.Background(), 1)
		env.Settle()
		_, err2 := c.GetMany(context.Background(), []int{1, 2})
		return errors.Join(err, err2)
	}
}

// puts puts the value, and gets it.
func puts[V any](v V) func(*cacheguardtest.Env) error {
	return func(env *cacheguardtest.Env) error {
		c, err := cacheOf(env, v, nil)
		if err != nil {
			return err
		}
		err = c.Put(context.Background(), 1, func(context.Context) (V, error) { return v, nil })
		_, err2 := c.Get(context.Background(), 1)
		return errors.Join(err, err2)
	}
}
