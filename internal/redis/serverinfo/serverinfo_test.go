package serverinfo

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func TestServersAreNamed(t *testing.T) {
	t.Parallel()
	for info, want := range map[string]string{
		"redis_version:7.0.15\r\nredis_mode:standalone\r\n":                                            "redis 7.0.15, standalone",
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\nserver_mode:cluster\r\n": "valkey 8.0.1, cluster",
		"redict_version:7.3.6\r\nredict_mode:standalone\r\nredis_version:7.2.4\r\n":                    "redict 7.3.6, standalone",
		"redis_version:7.4.0\r\ndragonfly_version:df-v1.27.1\r\nredis_mode:standalone\r\n":             "dragonfly 1.27.1, standalone",
		"redis_version:6.2.14\r\n": "redis 6.2.14",
		"loading:0\r\n":            "unknown (INFO has no version)",
	} {
		expect.Equal(t, info, OfInfo(info).String(), want)
	}
}

func TestOnlyWhatIsKnownToBeTooOldIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name Name
		old  bool
	}{
		{Name{Product: "redis", Version: "6.2.14"}, true}, {Name{Product: "keydb", Version: "6.3.4"}, true}, {Name{Product: "redis", Version: "7.0.0"}, false},
		{Name{Product: "redis", Version: "8.0.2"}, false}, {Name{Product: "valkey", Version: "8.0.1"}, false}, {Name{Product: "dragonfly", Version: "1.27.1"}, false},
		{Name{Product: "redis", Version: "unstable"}, false}, {Name{Why: "INFO refused"}, false},
	} {
		err := c.name.TooOld()
		if (err != nil) != c.old || c.old && !strings.Contains(err.Error(), c.name.Version+" is too old") {
			t.Errorf("%v: %v", c.name, err)
		}
	}
}

func TestAUserWhoMayNotAskForInfoLearnsTheNameByHello(t *testing.T) {
	t.Parallel()
	whole := Ask(t.Context(), shared.Client(t))
	poor := shared.As(t, "-@all")
	for _, protocol := range []int{2, 3} {
		rdb := shared.Client(t, poor, func(o *redis.Options) { o.Protocol = protocol })
		expect.Equal(t, "name", Ask(t.Context(), rdb), whole)
	}
}

func TestAnEvictingPolicyIsFoundWhereItMatters(t *testing.T) {
	t.Parallel()
	for info, bad := range map[string]bool{
		"maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n":    false, // nothing is ever evicted
		"maxmemory:100\r\nmaxmemory_policy:noeviction\r\n":   false,
		"maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n":  true,
		"maxmemory:100\r\nmaxmemory_policy:volatile-ttl\r\n": true,
		"": false,
	} {
		if err := evicts(info); (err != nil) != bad {
			t.Errorf("%q: %v", info, err)
		}
	}
}
