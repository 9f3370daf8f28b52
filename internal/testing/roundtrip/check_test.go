package roundtrip_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/roundtrip"
)

// amount encodes itself, and equals what has another encoding.
type amount struct{ Text string }

func (a amount) MarshalText() ([]byte, error) { return []byte(a.Text), nil }
func (a *amount) UnmarshalText(text []byte) error {
	a.Text = strings.TrimSuffix(string(text), "0")
	return nil
}
func (a amount) Equal(b amount) bool {
	return strings.TrimRight(a.Text, "0") == strings.TrimRight(b.Text, "0")
}

func TestWhatComesBackEqualIsEncodedInTheSameBytes(t *testing.T) {
	t.Parallel()
	same, other := amount{"1.5"}, amount{"1.50"}
	_, problem := roundtrip.Difference(&other, &same, json.Marshal)
	expect.Equal(t, "they are equal", problem, "")
	payload, err := roundtrip.Check(jsonCodec{}, &same)
	expect.Equal(t, "what comes back", string(payload), `"1.5"`)
	expect.ErrorIs(t, err, nil)
	for _, v := range []any{&other, &[]amount{{"1"}, {"1.50"}}, &struct{ Of *amount }{&other}} {
		payload, err = roundtrip.Check(jsonCodec{}, v)
		var altered *roundtrip.Error
		if !errors.As(err, &altered) || payload != nil || !strings.Contains(altered.Problem, "other bytes") {
			t.Errorf("%+v: %s, %v", v, payload, err)
		}
	}
}

// shuffled is a Codec without an order: it encodes the keys of a map as Go walks it. It counts.
type shuffled struct{ encoded *int }

func (c shuffled) Marshal(v any) ([]byte, error) {
	*c.encoded++
	return []byte(strings.Join(slices.Collect(maps.Keys(v.(map[string]bool))), " ")), nil
}

func (shuffled) Unmarshal(data []byte, v any) error {
	all := make(map[string]bool)
	for _, name := range strings.Fields(string(data)) {
		all[name] = true
	}
	*v.(*map[string]bool) = all
	return nil
}

func TestBytesWithoutAnOrderAreNoDifference(t *testing.T) {
	t.Parallel()
	of, encoded := map[string]bool{}, 0
	for _, name := range strings.Split("abcdefghijklm", "") {
		of[name] = true
		for range 500 {
			_, err := roundtrip.Check(shuffled{&encoded}, &of)
			expect.ErrorIs(t, err, nil)
		}
	}
}

// broken is JSON that fails where it says.
type broken struct {
	jsonCodec
	marshal, unmarshal func(times int) error
	times              *int
}

func (c broken) Marshal(v any) ([]byte, error) {
	*c.times++
	if c.marshal != nil {
		if err := c.marshal(*c.times); err != nil {
			return nil, err
		}
	}
	return c.jsonCodec.Marshal(v)
}

func (c broken) Unmarshal(data []byte, v any) error {
	if c.unmarshal != nil {
		return c.unmarshal(1)
	}
	return c.jsonCodec.Unmarshal(data, v)
}

func TestTheErrorsOfTheCodecAreNotLost(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		codec   broken
		is      error  // what the error wraps; nil: nothing of the Codec
		problem string // empty: it is the Codec's, which does not encode the value
		says    string
	}{
		"it does not encode":       {broken{marshal: func(int) error { return boom }}, boom, "", "boom"},
		"it panics":                {broken{marshal: func(int) error { panic("ouch") }}, nil, "", "codec panicked: ouch"},
		"it does not decode":       {broken{unmarshal: func(int) error { return boom }}, boom, "it cannot be decoded", "int: it cannot be decoded: boom"},
		"it panics when it reads":  {broken{unmarshal: func(int) error { panic("ouch") }}, nil, "it cannot be decoded", "codec panicked: ouch"},
		"it does not encode again": {broken{marshal: func(n int) error { return map[bool]error{true: boom}[n > 1] }}, boom, "it cannot be encoded again", "boom"},
		"it decodes nothing":       {broken{unmarshal: func(int) error { return nil }}, nil, "it comes back otherwise", "int: it comes back otherwise"},
	} {
		v := 7
		test.codec.times = new(int)
		_, err := roundtrip.Check(test.codec, &v)
		var altered *roundtrip.Error
		if is := errors.As(err, &altered); is != (test.problem != "") || is && altered.Problem != test.problem {
			t.Errorf("%s: %#v", name, err)
		}
		if err == nil || !strings.Contains(err.Error(), test.says) || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}
