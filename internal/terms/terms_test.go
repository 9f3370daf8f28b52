package terms_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/terms"
)

func TestZeroIsTheDefault(t *testing.T) {
	t.Parallel()
	got := terms.Terms{}.WithDefaults()
	want := terms.Terms{Prefix: "lock", TTL: 10 * time.Second, RedisTimeout: 500 * time.Millisecond}
	if err := (terms.Terms{}).Check(); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestFieldsHaveRanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		terms terms.Terms
		bad   string // the field; empty: none
	}{
		{terms.Terms{Prefix: "a:b"}, ""},
		{terms.Terms{Prefix: "a{b"}, "Prefix"},
		{terms.Terms{TTL: 100 * time.Millisecond}, ""},
		{terms.Terms{TTL: 99 * time.Millisecond}, "TTL"},
		{terms.Terms{TTL: -1}, "TTL"},
		{terms.Terms{TTL: 11 * 365 * 24 * time.Hour}, "TTL"},
		{terms.Terms{Watchdog: terms.Off}, ""},
		{terms.Terms{Watchdog: 1}, "Watchdog"},
		{terms.Terms{MaxHold: 10 * time.Second}, ""},
		{terms.Terms{MaxHold: terms.Off}, ""},
		{terms.Terms{MaxHold: -2}, "MaxHold"},
		{terms.Terms{MaxHold: 9 * time.Second}, "MaxHold"},
		{terms.Terms{MaxHold: 9 * time.Second, TTL: time.Second}, ""},
		{terms.Terms{RedisTimeout: time.Millisecond}, ""},
		{terms.Terms{RedisTimeout: 5}, "RedisTimeout"},
	} {
		err := test.terms.Check()
		if (err == nil) != (test.bad == "") || err != nil && !strings.Contains(err.Error(), "Config."+test.bad+": ") {
			t.Errorf("%+v: %v, want the field %q", test.terms, err, test.bad)
		}
	}
}

func TestNilClientsAreFound(t *testing.T) {
	t.Parallel()
	if terms.CheckClient(nil) == nil || terms.CheckClient((*redis.Client)(nil)) == nil {
		t.Error("a nil client is accepted")
	}
	if err := terms.CheckClient(&redis.Client{}); err != nil {
		t.Error(err)
	}
}

func TestProblemsNameEveryField(t *testing.T) {
	t.Parallel()
	var p terms.Problems
	p.Prefix("a:b")
	p.Life(0)
	p.Life(terms.Off)
	p.Life(terms.Longest)
	p.RedisTimeout(time.Millisecond)
	if err := p.Err(); err != nil {
		t.Error(err)
	}
	p.Prefix("a{")
	p.Life(terms.Longest + 1)
	p.RedisTimeout(terms.Off)
	p.Add("Size", "%d is too large", 7)
	err := p.Err()
	for _, want := range []string{"Config.Prefix: ", "Config.TTL: ", "Config.RedisTimeout: ", "Config.Size: 7 is too large"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not have %q", err, want)
		}
	}
}
