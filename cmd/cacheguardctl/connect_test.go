package main

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestTheURLSaysWhatKindOfRedisThereIs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://u:p@a:1/2":                "*redis.Client a:1",
		"rediss://a":                       "*redis.Client a:6379",
		"redis://u:p@a:1,b:2,c:3":          "cluster 3",
		"rediss://a:1,b:2?dial_timeout=1s": "cluster 2",
		"redis+sentinel://a:1,b:2/main/3":  "*redis.Client FailoverClient",
		"rediss+sentinel://u:p@a:1/main":   "*redis.Client FailoverClient",
		"redis://u:p,with@comma@a:1,b:2":   "cluster 2",
		"redis://a:1?addr=b:2":             "cluster 2",
	} {
		rdb, err := connect(url, false)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		got := ""
		switch c := rdb.(type) {
		case *redis.Client:
			got = "*redis.Client " + c.Options().Addr
		case *redis.ClusterClient:
			got = "cluster " + string(rune('0'+len(c.Options().Addrs)))
		}
		expect.Equal(t, url, got, want)
		_ = rdb.Close() // it was not used
	}
}

func TestASentinelIsNotTakenForARedis(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	is, name := s.Addrs()[0], s.Name()
	for _, url := range []string{"redis://u:hidden@" + is, "redis://" + is, "redis://" + is + "/1", "redis://" + is + "," + is} {
		for _, args := range [][]string{{"check"}, {"invalidate", "a"}, {"stats"}} {
			r := ctl(t, url, args...)
			r.want(t, misused, "names a Sentinel", "write redis+sentinel://"+is, "/"+name+", with")
			expect.Equal(t, "output", r.out, "")
		}
	}
	ctl(t, "redis+sentinel://"+is+"/"+name, "check", "--no-locks").want(t, done)
	for _, args := range [][]string{{"check"}, {"invalidate", "a"}} {
		ctl(t, "redis+sentinel://"+is+"/wrong", args...).want(t, misused, is+" answers, and knows no primary of the name")
	}
}
