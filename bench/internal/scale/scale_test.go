package scale

import (
	"errors"
	"testing"

	"github.com/cacheguard/go/bench/internal/server"
)

func TestCostsGrowWithTheLogarithmOfTheirNumber(t *testing.T) {
	t.Parallel()
	c := costs{few: crowding{instances: 100, get: 5, inbox: 60}, many: crowding{instances: 1000, get: 8, inbox: 100}}
	for n, want := range map[int]float64{1: 5, 100: 5, 1000: 8, 100_000: 14} {
		if got := c.at(n).get; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("of %d: %v, want %v", n, got, want)
		}
	}
	if list, table := c.at(10).inbox, c.at(3000).inbox; list != 60 || table != 100 {
		t.Errorf("an inbox takes %v in a list and %v in a table", list, table)
	}
}

func TestModelPredictsHowOftenRedisIsAsked(t *testing.T) {
	t.Parallel()
	redis, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	for _, shared := range []bool{false, true} {
		const instances = 5
		f, err := openFleet(redis, instances, shared)
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.measure(t.Context(), 1, 5, 0)
		if err = errors.Join(err, f.close()); err != nil {
			t.Fatal(err)
		}
		c := costs{few: crowding{instances: 1}, many: crowding{instances: 10}}
		want := c.wave(instances, f.inboxes(), 1)
		if m.loads != 1 || m.commands != want["commands"] || m.requests != want["requests"] {
			t.Errorf("shared %v: %v loads, %v requests and %v commands, want %v", shared, m.loads, m.requests, m.commands, want)
		}
	}
}
