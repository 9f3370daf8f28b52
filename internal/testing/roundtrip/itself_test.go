package roundtrip_test

import (
	"encoding/json"
	"log/slog"
	"math/big"
	"net/netip"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/roundtrip"
)

type (
	event struct { // has MarshalJSON by accident
		time.Time
		Name string
	}
	silent  struct{ N int }
	private struct{ n int }
	money   struct { // may keep one amount in two ways
		Text string
		memo []int
	}
	shop struct {
		Name string
		at   time.Time
		sum  big.Int
	}
)

func (silent) MarshalJSON() ([]byte, error)      { return []byte("{}"), nil }
func (private) MarshalJSON() ([]byte, error)     { return []byte("{}"), nil }
func (m money) MarshalText() ([]byte, error)     { return []byte(m.Text), nil }
func (m *money) UnmarshalText(text []byte) error { m.Text = string(text); return nil }
func comesBack[V any](v V) func() (path, what string) {
	return func() (path, what string) {
		var back V
		raw, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(raw, &back)
		}
		if err != nil {
			return "", err.Error()
		}
		return roundtrip.Difference(&v, &back, json.Marshal)
	}
}

func TestWhatEncodesItselfIsNotTrustedWithAllThatItHas(t *testing.T) {
	t.Parallel()
	large, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	now := time.Now()
	for name, test := range map[string]struct {
		trip func() (path, what string)
		path string // empty: it comes back
	}{
		"a field that its method leaves out":       {comesBack(silent{3}), "roundtrip_test.silent.N"},
		"within a slice":                           {comesBack([]silent{{0}, {3}}), "[]roundtrip_test.silent[1].N"},
		"within a struct":                          {comesBack(struct{ X *silent }{&silent{3}}), "struct { X *roundtrip_test.silent }.X.N"},
		"a field beside an embedded time":          {comesBack(event{now, "opening"}), "roundtrip_test.event.Name"},
		"all that it has":                          {comesBack(private{3}), "roundtrip_test.private"},
		"in a field that is not exported":          {comesBack(shop{"a", now, big.Int{}}), "roundtrip_test.shop.at"},
		"a number in a field that is not exported": {comesBack(shop{"a", time.Time{}, *large}), "roundtrip_test.shop.sum"},
		"a number, through a pointer":              {comesBack(large), ""},
		"no number":                                {comesBack((*big.Int)(nil)), ""},
		"a zero that is no zero value":             {comesBack(new(big.Int).Sub(large, large)), ""},
		"a large floating-point number":            {comesBack(big.NewFloat(1.5)), ""},
		"a time":                                   {comesBack(now), ""},
		"times":                                    {comesBack(map[string][]*time.Time{"a": {&now, nil}}), ""},
		"an embedded time":                         {comesBack(event{Time: now}), ""},
		"an address":                               {comesBack([]netip.Addr{netip.MustParseAddr("::1%eth0"), {}}), ""},
		"an expression":                            {comesBack(regexp.MustCompile("a+")), ""},
		"a level":                                  {comesBack(slog.LevelWarn), ""},
		"an encoding with spaces":                  {comesBack(json.RawMessage(`{"a": 1}`)), ""},
		"none":                                     {comesBack(struct{ Raw json.RawMessage }{}), ""},
		"what it holds otherwise":                  {comesBack(money{"3", []int{3}}), ""},
		"the zero value":                           {comesBack(silent{}), ""},
		"a type that is what it encodes, in a map": {comesBack(map[netip.Addr]money{{}: {Text: "1"}}), ""},
	} {
		path, what := test.trip()
		expect.Equal(t, name, path, test.path)
		expect.Equal(t, name+": it says what", what != "", test.path != "")
		if test.path == "" && what != "" {
			t.Log(what)
		}
	}
	expect.Equal(t, "event", roundtrip.EncodesItself(reflect.TypeFor[event]()), true)
}
