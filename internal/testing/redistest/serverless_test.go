package redistest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestServerlessRefusesWhatItsRulesForbid(t *testing.T) {
	t.Parallel()
	s := StartServerless(t)
	many := append(make([]any, 0, most+1), "mget")
	for range most {
		many = append(many, "k")
	}
	for name, c := range map[string]struct {
		args []any
		want string // "" if it is allowed
	}{
		"a read":                         {[]any{"get", "k"}, ""},
		"as many arguments as may be":    {many[:most], ""},
		"one more":                       {many, "more than 1999 arguments"},
		"keys of two slots":              {[]any{"mget", "k", "l"}, "CROSSSLOT"},
		"CONFIG":                         {[]any{"config", "get", "maxmemory"}, "unknown command"},
		"INFO":                           {[]any{"info"}, "unknown command"},
		"SCRIPT":                         {[]any{"script", "flush"}, "unknown command"},
		"CLIENT":                         {[]any{"client", "id"}, "unknown command"},
		"WAIT":                           {[]any{"wait", 0, 0}, "unknown command"},
		"PSUBSCRIBE":                     {[]any{"psubscribe", "*"}, "unknown command"},
		"CLUSTER":                        {[]any{"cluster", "keyslot", "k"}, ""},
		"a subcommand of CLUSTER":        {[]any{"cluster", "failover"}, "unknown command"},
		"a message":                      {[]any{"publish", "any", "m"}, ""},
		"a script":                       {[]any{"eval", "return redis.call('GET', KEYS[1])", 1, "k"}, ""},
		"a script without keys":          {[]any{"eval", "return 1", 0}, "without any input keys"},
		"a script with another key":      {[]any{"eval", "return redis.call('GET', 'l')", 1, "k"}, "undeclared key"},
		"a script's message in its slot": {[]any{"eval", "return redis.call('PUBLISH', 'c:{k}', 'm')", 1, "k"}, ""},
		"a script's message elsewhere":   {[]any{"eval", "return redis.call('PUBLISH', 'c', 'm')", 1, "k"}, "do not hash to the same slot"},
		"the same as an answer":          {[]any{"eval", "return redis.pcall('PUBLISH', 'c', 'm').err", 1, "k"}, ""},
		"with flags":                     {[]any{"eval", "#!lua flags=allow-oom\nreturn redis.call('GET', 'l')", 1, "k"}, "undeclared key"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.Proxy.Client(t).Do(t.Context(), c.args...).Err()
			if errors.Is(err, redis.Nil) {
				err = nil
			}
			if ok := err == nil; ok != (c.want == "") || !ok && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestServerlessIsOneNodeAndKnowsScriptsByTheirOwnHashes(t *testing.T) {
	t.Parallel()
	s := StartServerless(t)
	rdb := s.Client(t)
	nodes, err := rdb.ClusterSlots(t.Context()).Result() //nolint:staticcheck // what is documented
	if err != nil || len(nodes) != 1 || nodes[0].Start != 0 || nodes[0].End != slots-1 || len(nodes[0].Nodes) != 1 || nodes[0].Nodes[0].Addr != s.Addr() {
		t.Error(nodes, err)
	}
	script := redis.NewScript("return {KEYS[1], ARGV[1]}")
	for range 2 { // by EVAL, then by EVALSHA
		got, err := script.Run(t.Context(), rdb, []string{"k"}, "a").StringSlice()
		if err != nil || !slices.Equal(got, []string{"k", "a"}) {
			t.Error(got, err)
		}
	}
	if n := s.Commands(); n["eval"] != 1 || n["evalsha"] != 2 {
		t.Error(fmt.Sprint(n))
	}
}

func TestServerlessTakesMessagesToSubscribers(t *testing.T) {
	t.Parallel()
	s := SharedServerless(t)
	sub := s.Client(t).Subscribe(t.Context(), "c")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Client(t).Publish(t.Context(), "c", "m").Err(); err != nil {
		t.Fatal(err)
	}
	if m, err := sub.ReceiveMessage(t.Context()); err != nil || m.Payload != "m" {
		t.Error(m, err)
	}
}
