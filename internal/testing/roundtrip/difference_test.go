package roundtrip_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/oddtypes"
	"github.com/cacheguard/go/internal/testing/roundtrip"
)

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

func TestOddTypesThroughJSON(t *testing.T) {
	t.Parallel()
	oddtypes.Expect(t, jsonCodec{}, oddtypes.NotThroughJSON)
}

type ring struct{ Next *ring }

type rings []rings

func TestTypesThatConsistOfThemselvesAreNoTrouble(t *testing.T) {
	t.Parallel()
	a, b := rings{{}, {{}}}, rings{{}, {{}}}
	_, what := roundtrip.Difference(&a, &b, nil)
	expect.Equal(t, "difference", what, "")
	loop := &ring{}
	loop.Next = loop
	_, what = roundtrip.Difference(&loop, &loop, nil)
	expect.Equal(t, "difference", what, "")
}

// The price of looking.
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
		if _, what := roundtrip.Difference(&v, &back, json.Marshal); what != "" {
			b.Fatal(what)
		}
	}
}

// chain leads back to itself, both ways.
type chain struct{ next, before *chain }

func TestWhatIsIdenticalIsFoundOutInFiniteTime(t *testing.T) {
	t.Parallel()
	was, is := new(chain), new(chain)
	was.next, was.before, is.next, is.before = was, was, is, is
	expect.Equal(t, "rings", roundtrip.Identical(&was, &is), true)
	is.before = nil
	expect.Equal(t, "a ring that is open", roundtrip.Identical(&was, &is), false)
	now := time.Now()
	without := now.Round(0)
	expect.Equal(t, "a time", roundtrip.Identical(&now, &now), true)
	expect.Equal(t, "a time without its monotonic clock", roundtrip.Identical(&now, &without), false)
	none, empty := []int(nil), []int{}
	expect.Equal(t, "nil and empty", roundtrip.Identical(&none, &empty), false)
}
