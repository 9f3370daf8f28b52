package config_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestZeroIsTheDefault(t *testing.T) {
	t.Parallel()
	got := config.Lock{}.WithDefaults()
	want := config.Lock{Prefix: "lock", Instance: config.DefaultInstance(), TTL: 10 * time.Second, RedisTimeout: 500 * time.Millisecond}
	if err := (config.Lock{}).Check(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestFieldsHaveRanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		lock config.Lock
		bad  string // the field; empty: none
	}{
		{config.Lock{Prefix: "a:b"}, ""},
		{config.Lock{Prefix: "a{b"}, "Prefix"},
		{config.Lock{Prefix: "a\xff"}, "Prefix"},
		{config.Lock{Instance: "a\xff"}, "Instance"},
		{config.Lock{Instance: "a b"}, "Instance"},
		{config.Lock{TTL: 100 * time.Millisecond}, ""},
		{config.Lock{TTL: 99 * time.Millisecond}, "TTL"},
		{config.Lock{TTL: -1}, "TTL"},
		{config.Lock{TTL: 11 * 365 * 24 * time.Hour}, "TTL"},
		{config.Lock{MaxHold: 10 * time.Second}, ""},
		{config.Lock{MaxHold: config.Off}, ""},
		{config.Lock{MaxHold: -2}, "MaxHold"},
		{config.Lock{MaxHold: 9 * time.Second}, "MaxHold"},
		{config.Lock{MaxHold: 9 * time.Second, TTL: time.Second}, ""},
		{config.Lock{RedisTimeout: time.Millisecond}, ""},
		{config.Lock{RedisTimeout: 5}, "RedisTimeout"},
	} {
		err := test.lock.Check()
		if (err == nil) != (test.bad == "") || err != nil && !strings.Contains(err.Error(), "Config."+test.bad+": ") {
			t.Errorf("%+v: %v, want the field %q", test.lock, err, test.bad)
		}
	}
}

func TestNilClientsAreFound(t *testing.T) {
	t.Parallel()
	if config.CheckClient(nil) == nil || config.CheckClient((*redis.Client)(nil)) == nil {
		t.Error("a nil client is accepted")
	}
	expect.ErrorIs(t, config.CheckClient(&redis.Client{}))
}

func TestProblemsNameEveryField(t *testing.T) {
	t.Parallel()
	var p config.Problems
	p.Prefix("a:b")
	p.Life(0)
	p.Life(config.Off)
	p.Life(config.Longest)
	p.RedisTimeout(time.Millisecond)
	expect.ErrorIs(t, p.Err())
	p.Prefix("a{")
	p.Life(config.Longest + 1)
	p.RedisTimeout(config.Off)
	p.Add("Size", "%d is too large", 7)
	err := p.Err()
	expect.Says(t, err, "Config.Prefix: ", "Config.TTL: ", "Config.RedisTimeout: ", "Config.Size: 7 is too large")
}
