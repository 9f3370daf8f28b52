package cacheguardtest_test

import (
	"context"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
)

// reporter is a test that only reports.
type reporter struct {
	*testing.T

	ends   []func()
	errors []string
}

func (r *reporter) Cleanup(f func()) { r.ends = append(r.ends, f) }

func (r *reporter) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// end ends the test.
func (r *reporter) end() {
	for len(r.ends) > 0 {
		last := r.ends[len(r.ends)-1]
		r.ends = r.ends[:len(r.ends)-1]
		last()
	}
}

type basket struct {
	Owner string
	Items []string
	Made  time.Time
}

func TestACallerThatChangesASharedValueFailsTheTest(t *testing.T) {
	t.Parallel()
	inner := &reporter{T: t}
	env := cacheguardtest.New(inner, cacheguard.Config{Local: cacheguard.LocalConfig{MaxEntries: 10}})
	made := time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)
	load := func(context.Context) (basket, error) { return basket{"ann", []string{"tea", "cup"}, made}, nil }
	baskets, err := cacheguard.NewCache(env.Guard, cacheguard.CacheConfig[string, *basket]{
		Name: "basket", Load: func(context.Context, string) (*basket, error) { return &basket{Owner: "bob", Made: made}, nil },
	})
	expect.ErrorIs(t, err)
	get := func(key string) basket {
		b, err := cacheguard.Get(t.Context(), env.Guard, key, load)
		expect.ErrorIs(t, err)
		return b
	}
	for range 3 { // loaded, from Redis, from the tier
		own := get("looked-at")
		own.Items = append(own.Items, "spoon")
		changed := get("changed")
		expect.Equal(t, "what others changed", changed.Items[0], "tea")
		changed.Items[0] = "milk"
		env.Settle()
	}
	one, err := baskets.Get(t.Context(), "1")
	expect.ErrorIs(t, err)
	one.Owner = "eve"
	many, err := baskets.GetMany(t.Context(), []string{"2", "3"})
	expect.ErrorIs(t, err)
	many["3"].Owner = "eve"
	raw, err := cacheguard.Get(t.Context(), env.Guard, "raw", func(context.Context) ([]byte, error) { return []byte("raw"), nil })
	expect.ErrorIs(t, err)
	raw[0] = 'R'
	inner.end()
	for i, want := range []string{`"changed" was changed after a Get returned it, at cacheguardtest_test.basket.Items[0]`, `"basket:1"`, `"basket:3"`, `"raw"`} {
		if len(inner.errors) != 4 || !strings.Contains(inner.errors[i], want) {
			t.Fatalf("no %s in %q", want, inner.errors)
		}
	}
}

func TestCallersHaveCopiesWhereNobodyCanTell(t *testing.T) {
	t.Parallel()
	inner := &reporter{T: t}
	env := cacheguardtest.New(inner, cacheguard.Config{})
	hidden := &struct {
		Name string
		seen []int
	}{Name: "a", seen: []int{1}}
	got, err := cacheguard.Get(t.Context(), env.Guard, "hidden", func(context.Context) (any, error) { return hidden, nil })
	expect.ErrorIs(t, err)
	expect.Equal(t, "what a copy could not have is handed out itself", got == any(hidden), true)
	inner.end()
	expect.Equal(t, "errors", len(inner.errors), 1)
	env = cacheguardtest.New(t, cacheguard.Config{})
	now := time.Now()
	at, err := cacheguard.Get(t.Context(), env.Guard, "now", func(context.Context) (time.Time, error) { return now, nil })
	expect.ErrorIs(t, err)
	expect.Equal(t, "a time keeps its monotonic clock", at == now, true)
}

func TestSurvivesNamesTheFieldThatDoesNotComeBack(t *testing.T) {
	t.Parallel()
	type kept struct {
		Name string
		At   time.Time
		IP   net.IP
		Tags map[string][]*basket
		Self []kept
	}
	type lossy struct {
		Name string
		Secret,
		Other string `json:"-"`
	}
	type hidden struct {
		Name  string
		count int
	}
	type opening struct { // has the MarshalJSON of the time
		time.Time
		Name string
	}
	type guarded struct {
		sync.Mutex
		Name string
		_    int
	}
	for name, test := range map[string]struct {
		check func(testing.TB)
		want  string
	}{
		"kept":               {func(t testing.TB) { cacheguardtest.Survives[kept](t, nil) }, ""},
		"a pointer":          {func(t testing.TB) { cacheguardtest.Survives[*kept](t, nil) }, ""},
		"lossy":              {func(t testing.TB) { cacheguardtest.Survives[lossy](t, nil) }, "lossy.Secret: "},
		"lossy, but empty":   {func(t testing.TB) { cacheguardtest.Survives(t, nil, lossy{Name: "a"}) }, ""},
		"hidden":             {func(t testing.TB) { cacheguardtest.Survives(t, nil, hidden{}, hidden{"a", 1}) }, "hidden.count: "},
		"hidden, made":       {func(t testing.TB) { cacheguardtest.Survives[hidden](t, nil) }, "hidden.count: "},
		"hidden time":        {func(t testing.TB) { cacheguardtest.Survives[struct{ A, at time.Time }](t, nil) }, ".at: "},
		"hidden below":       {func(t testing.TB) { cacheguardtest.Survives[struct{ M map[string]*hidden }](t, nil) }, ".M[…].count: "},
		"embedded":           {func(t testing.TB) { cacheguardtest.Survives[struct{ lossy }](t, nil) }, ".lossy.Secret: "},
		"embedded pointer":   {func(t testing.TB) { cacheguardtest.Survives[struct{ *lossy }](t, nil) }, "unexported struct"},
		"behind any":         {func(t testing.TB) { cacheguardtest.Survives[struct{ V any }](t, nil) }, ".V: a int comes back as a float64"},
		"an error":           {func(t testing.TB) { cacheguardtest.Survives[struct{ Err error }](t, nil) }, ".Err: nothing says which type"},
		"encodes itself":     {func(t testing.TB) { cacheguardtest.Survives(t, nil, []silent{{3}}) }, "silent[0].N: "},
		"embeds a time":      {func(t testing.TB) { cacheguardtest.Survives[opening](t, nil) }, "opening.Name: "},
		"a lock":             {func(t testing.TB) { cacheguardtest.Survives[*guarded](t, nil) }, ""},
		"numbers":            {func(t testing.TB) { cacheguardtest.Survives[[]*big.Int](t, nil) }, ""},
		"a channel":          {func(t testing.TB) { cacheguardtest.Survives[struct{ C chan int }](t, nil) }, "C: "},
		"cannot be encoded":  {func(t testing.TB) { cacheguardtest.Survives(t, nil, any(func() {})) }, "unsupported type"},
		"another's encoding": {func(t testing.TB) { cacheguardtest.Survives(t, upper{}, "a") }, "string: it comes back otherwise"},
	} {
		inner := &reporter{T: t}
		test.check(inner)
		if said := strings.Join(inner.errors, "\n"); (test.want == "") != (said == "") || !strings.Contains(said, test.want) {
			t.Errorf("%s: %q, want %q", name, said, test.want)
		}
	}
}

type silent struct{ N int }

func (silent) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// upper is a Codec that brings strings back otherwise.
type upper struct{}

func (upper) Marshal(v any) ([]byte, error)      { return []byte(strings.ToUpper(v.(string))), nil }
func (upper) Unmarshal(data []byte, v any) error { *v.(*string) = string(data); return nil }

func TestAnIntentThatIsForgottenFailsTheTest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*cacheguardtest.Env, *cacheguard.Intent)
		want int
	}{
		"forgotten": {func(*cacheguardtest.Env, *cacheguard.Intent) {}, 1},
		"done":      {func(_ *cacheguardtest.Env, in *cacheguard.Intent) { expect.ErrorIs(t, in.Done(t.Context())) }, 0},
		"closed":    {func(env *cacheguardtest.Env, _ *cacheguard.Intent) { expect.ErrorIs(t, env.Guard.Close()) }, 0}, // as by a process that dies
	} {
		inner := &reporter{T: t}
		env := cacheguardtest.New(inner, cacheguard.Config{})
		in, err := env.Guard.Intend(t.Context(), cacheguard.Changes{Keys: []string{"x"}})
		expect.ErrorIs(t, err)
		test.end(env, in)
		inner.end()
		expect.Equal(t, name+": errors", len(inner.errors), test.want)
	}
}
