// Package oddtypes has values of types that codecs disagree about.
package oddtypes

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/roundtrip"
)

// Value is a value, as the pointer to it, and how it is encoded.
type Value struct {
	protocol.Shape

	Of any
}

// Named is a name for a text.
type Named string

// Shape is what has no method that says what it is.
type Shape interface{ Area() float64 }

// Square is a Shape.
type Square struct{ Side float64 }

// Area returns the area of the square.
func (s Square) Area() float64 { return s.Side * s.Side }

// Flawed encodes itself, and forgets to decode.
type Flawed struct{ A, B int }

// MarshalText loses B.
func (f Flawed) MarshalText() ([]byte, error) { return fmt.Append(nil, f.A), nil }

// UnmarshalText does not know what A was.
func (f *Flawed) UnmarshalText([]byte) error { return nil }

type (
	inner  struct{ A, b int }
	embeds struct {
		inner
		C int
	}
	node struct {
		Next *node
		N    int
	}
	tagged struct {
		Kept   int
		Hidden int `json:"-" msgpack:"-"`
	}
	holder struct {
		At     time.Time
		Of     any
		Shape  Shape
		Err    error
		Raw    []byte
		ByName map[Named][]int
		Fixed  [2]string
		Next   *holder
	}
)

// Values are the values.
var Values = map[string]Value{
	"a string that is not UTF-8":       of("a\xff"), // it is stored as it is
	"a named string that is not UTF-8": of(Named("a\xff")),
	"a field that is not UTF-8":        of(holder{ByName: map[Named][]int{"\xfe": {1}}}),
	"bytes":                            of([]byte{0, 255}),
	"a field of bytes":                 of(holder{Raw: []byte{0, 255}}),
	"an empty slice":                   of([]int{}),
	"a nil slice":                      of([]int(nil)),
	"an empty map":                     of(map[string]int{}),
	"a nil pointer":                    of((*node)(nil)),
	"a list":                           of(&node{N: 1, Next: &node{N: 2}}),
	"an int64 that no float has":       of(int64(math.MaxInt64)),
	"a uint64 that no float has":       of(uint64(math.MaxUint64)),
	"a float32":                        of(float32(0.1)),
	"not a number":                     of(math.NaN()),
	"infinity":                         of(math.Inf(1)),
	"an int behind any":                of(any(1)),
	"a struct behind any":              of(map[string]any{"s": Square{1}}),
	"an int in a field of any":         of(holder{Of: 1}),
	"an interface with methods":        of(holder{Shape: Square{1}}),
	"interfaces with methods":          of([]Shape{Square{1}}),
	"an error":                         of(holder{Err: errors.New("no")}),
	"an unexported field":              of(inner{1, 2}),
	"an unexported field that is zero": of(inner{A: 1}),
	"an embedded struct":               of(embeds{inner{A: 1}, 2}),
	"a hidden field":                   of(tagged{1, 2}),
	"nothing exported":                 of(struct{ a int }{1}),
	"an empty struct":                  of(map[string]struct{}{"a": {}}),
	"a time with a clock and a zone":   of(time.Now().In(time.FixedZone("there", 3600))),
	"a time in a field":                of(holder{At: time.Now()}),
	"a duration":                       of(time.Minute),
	"a big number":                     of(big.NewInt(math.MaxInt64)),
	"an address":                       of(netip.MustParseAddr("::1")),
	"a URL with a password":            of(url.URL{Scheme: "http", User: url.UserPassword("a", "b"), Host: "c"}),
	"what encodes itself badly":        of(Flawed{1, 2}),
	"keys that are structs":            of(map[[1]int]int{{1}: 1}),
	"a chan that is nil":               of(struct{ C chan int }{}),
	"a func":                           of(struct{ F func() }{func() {}}),
	"a complex number":                 of(complex(1, 2)),
	"pointers to pointers":             of(ptr(ptr(1))),
	"an array":                         of(holder{Fixed: [2]string{"a", "b"}}),
	"far down":                         of(&holder{Next: &holder{ByName: map[Named][]int{"a": {1, 2}}, Of: int8(1)}}),
}

// NotThroughJSON are the values that do not come back from encoding/json, and why.
var NotThroughJSON = map[string]string{
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
}

func ptr[T any](v T) *T { return &v }

func of[V any](v V) Value { return Value{protocol.ShapeOf[V]{}, &v} }

// Expect sends all of them through the codec, and compares what comes back. What is not listed comes back as it was.
func Expect(tb testing.TB, c protocol.Codec, problems map[string]string) {
	tb.Helper()
	ExpectOf(tb, problems, func(v Value) error {
		if kind, _, err := v.Encode(c, v.Of); err != nil || kind == protocol.Raw {
			return err
		}
		_, err := roundtrip.Check(c, v.Of)
		return err
	})
}

// ExpectOf has something look at all of them: it returns a *roundtrip.Error, or why the value cannot be encoded.
func ExpectOf(tb testing.TB, problems map[string]string, look func(Value) error) {
	tb.Helper()
	for name, v := range Values {
		if got := problemOf(look(v)); got != problems[name] {
			tb.Errorf("%s: %q, want %q", name, got, problems[name])
		}
	}
	for name := range problems {
		if Values[name].Of == nil {
			tb.Errorf("there is no value %q", name)
		}
	}
}

func problemOf(err error) string {
	var altered *roundtrip.Error
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &altered):
		return "unstorable"
	case altered.Err != nil:
		return "undecodable"
	default:
		return altered.Path + ": " + altered.Problem
	}
}
