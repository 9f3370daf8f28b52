package fidelity_test

import (
	"encoding/json"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/fidelity"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/oddtypes"
)

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

func TestOddTypesThroughJSON(t *testing.T) {
	t.Parallel()
	oddtypes.Expect(t, jsonCodec{}, map[string]string{
		"a URL with a password":            "url.URL.User.username: it comes back otherwise",
		"a chan that is nil":               "unstorable",
		"a complex number":                 "unstorable",
		"a field that is not UTF-8":        "oddtypes.holder.ByName: a key of it does not come back",
		"a func":                           "unstorable",
		"a hidden field":                   "oddtypes.tagged.Hidden: it comes back otherwise",
		"a named string that is not UTF-8": "oddtypes.Named: it comes back otherwise",
		"a struct behind any":              "map[string]interface {}[…]: a oddtypes.Square comes back as a map[string]interface {}",
		"an error":                         "undecodable",
		"an int behind any":                "interface {}: a int comes back as a float64",
		"an int in a field of any":         "oddtypes.holder.Of: a int comes back as a float64",
		"an interface with methods":        "undecodable",
		"an unexported field":              "oddtypes.inner.b: it comes back otherwise",
		"far down":                         "*oddtypes.holder.Next.Of: a int8 comes back as a float64",
		"infinity":                         "unstorable",
		"interfaces with methods":          "undecodable",
		"keys that are structs":            "unstorable",
		"not a number":                     "unstorable",
		"nothing exported":                 "struct { a int }.a: it comes back otherwise",
		"what encodes itself badly":        "oddtypes.Flawed: it comes back otherwise",
	})
}

type row struct {
	Done  chan int
	Notes []func()
	Mu    sync.Mutex `json:"-"`
}

type ring struct{ Next *ring }

type (
	failed struct {
		Next *struct{ Err error }
		Self map[string][]failed
	}
	inner      struct{ Err error }
	embedsChan struct{ Done chan int }
	union      struct{ Of oddtypes.Shape } // its UnmarshalJSON knows the types
	unions     []oddtypes.Shape            // as above
	loop       struct{ *loop }
	loops      *loops
)

func (*union) UnmarshalJSON([]byte) error  { return nil }
func (*unions) UnmarshalJSON([]byte) error { return nil }

func TestWhatJSONNeverBringsBackIsRefusedByThePathOfTheField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   reflect.Type
		path string // empty: it may come back
	}{
		{reflect.TypeFor[row](), "fidelity_test.row.Done"},
		{reflect.TypeFor[[]*row](), "[]*fidelity_test.row.Done"},
		{reflect.TypeFor[struct{ Rows [2]row }](), "struct { Rows [2]fidelity_test.row }.Rows.Done"},
		{reflect.TypeFor[map[string]func()](), "map[string]func()"},
		{reflect.TypeFor[chan int](), "chan int"},
		{reflect.TypeFor[struct{ a, b int }](), "struct { a int; b int }"},
		{reflect.TypeFor[struct{ Mu sync.Mutex }](), "struct { Mu sync.Mutex }.Mu"},
		{reflect.TypeFor[oddtypes.Shape](), "oddtypes.Shape"},
		{reflect.TypeFor[[]error](), "[]error"},
		{reflect.TypeFor[struct{ Rows *row }](), ""},
		{reflect.TypeFor[struct{ sync.Mutex }](), ""},
		{reflect.TypeFor[struct{ Of oddtypes.Shape }](), "struct { Of oddtypes.Shape }.Of"},
		{reflect.TypeFor[struct{ Of *[]map[string]oddtypes.Shape }](), "struct { Of *[]map[string]oddtypes.Shape }.Of"},
		{reflect.TypeFor[[]*failed](), "[]*fidelity_test.failed.Next.Err"},
		{reflect.TypeFor[struct{ inner }](), "struct { fidelity_test.inner }.inner.Err"},
		{reflect.TypeFor[struct{ *inner }](), "struct { *fidelity_test.inner }.inner.Err"},
		{reflect.TypeFor[struct{ embedsChan }](), "struct { fidelity_test.embedsChan }.embedsChan.Done"},
		{reflect.TypeFor[struct {
			A  int
			Of oddtypes.Shape `json:"-"`
		}](), ""},
		{reflect.TypeFor[struct {
			error
			A int
		}](), ""},
		{reflect.TypeFor[struct{ By map[string]any }](), ""},
		{reflect.TypeFor[map[string]union](), ""},
		{reflect.TypeFor[struct{ All unions }](), ""},
		{reflect.TypeFor[struct {
			inner
			Err string
		}](), ""},
		{reflect.TypeFor[struct{ Loop *loop }](), ""},
		{reflect.TypeFor[loops](), ""},
		{reflect.TypeFor[struct{}](), ""},
		{reflect.TypeFor[time.Time](), ""},
		{reflect.TypeFor[oddtypes.Flawed](), ""},
		{reflect.TypeFor[any](), ""},
		{reflect.TypeFor[string](), ""},
		{reflect.TypeFor[ring](), ""},
	} {
		path, what := fidelity.Impossible(c.of)
		expect.Equal(t, c.of.String(), path, c.path)
		expect.Equal(t, c.of.String()+": it says why", what != "", c.path != "")
	}
}

type rings []rings

func TestTypesThatConsistOfThemselvesAreNoTrouble(t *testing.T) {
	t.Parallel()
	_, what := fidelity.Impossible(reflect.TypeFor[rings]())
	expect.Equal(t, "refused", what, "")
	a, b := rings{{}, {{}}}, rings{{}, {{}}}
	_, what = fidelity.Difference(&a, &b, nil)
	expect.Equal(t, "difference", what, "")
	loop := &ring{}
	loop.Next = loop
	_, what = fidelity.Difference(&loop, &loop, nil)
	expect.Equal(t, "difference", what, "")
}

func TestTheFirstValuesAndSomeOfTheOthersAreLookedAt(t *testing.T) {
	t.Parallel()
	var s fidelity.Sampler
	count := func(values int) (n int) {
		for range values {
			if s.Due() {
				n++
			}
		}
		return n
	}
	expect.Equal(t, "of the first", count(8), 8)
	expect.Equal(t, "of the next", count(4000), 0)
	expect.Equal(t, "of the others", count(2*4096), 2)
	s.Doubt()
	expect.Equal(t, "after one that did not come back", count(20), 8)
	expect.Equal(t, "told", s.Tell() && !s.Tell(), true)
}

// The price of looking, which the first values of a Cache and one in 4096 pay.
func BenchmarkDifference(b *testing.B) {
	type line struct {
		Name  string
		Cents int64
		At    time.Time
	}
	v := make([]line, 20)
	for b.Loop() {
		payload, _ := json.Marshal(v)
		var back []line
		_ = json.Unmarshal(payload, &back)
		if _, what := fidelity.Difference(&v, &back, json.Marshal); what != "" {
			b.Fatal(what)
		}
	}
}
