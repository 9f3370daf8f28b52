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

	"github.com/cacheguard/go/internal/cache/fidelity"
	"github.com/cacheguard/go/internal/cache/protocol"
)

// Trip encodes a value, decodes that, and compares. It returns where the two differ, or why the value cannot be stored; nothing, if it comes back.
type Trip func(protocol.Codec) (problem string)

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

// Trips are the values.
var Trips = map[string]Trip{
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

func ptr[T any](v T) *T { return &v }

func of[V any](v V) Trip {
	return func(c protocol.Codec) string {
		kind, payload, err := protocol.ShapeOf[V]{}.Encode(c, &v)
		if err != nil {
			return "unstorable"
		}
		back, err := protocol.ShapeOf[V]{}.Decode(c, protocol.Entry{Kind: kind, Payload: payload})
		if err != nil {
			return "undecodable"
		}
		path, what := fidelity.Difference(&v, back, c.Marshal)
		if what == "" {
			return ""
		}
		return path + ": " + what
	}
}

// Expect sends all of them through the codec. What is not listed comes back.
func Expect(tb testing.TB, c protocol.Codec, problems map[string]string) {
	tb.Helper()
	for name, trip := range Trips {
		if got := trip(c); got != problems[name] {
			tb.Errorf("%s: %q, want %q", name, got, problems[name])
		}
	}
	for name := range problems {
		if Trips[name] == nil {
			tb.Errorf("there is no value %q", name)
		}
	}
}
