package keys

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestSlotIsTheOneOfTheServer(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, "--cluster-enabled", "yes").Client(t)
	keys := []string{"a", "{a}", "x{a}y", "x{}y", "{}a", "a{b{c}d}", "}{a}", "a{b", "ü", "\x00\xff"}
	for i := range 200 {
		keys = append(keys, "product:"+strconv.Itoa(i))
	}
	for _, key := range keys {
		want, err := rdb.ClusterKeySlot(t.Context(), key).Result()
		expect.Must(t, err)
		expect.Equal(t, key, Slot(key), int(want))
	}
}

func TestATokenSaysWhichInstanceItIsOf(t *testing.T) {
	t.Parallel()
	for _, instance := range []string{"", "shop-1", "a@b", "host:42"} {
		one, other := NewToken(instance), NewToken(instance)
		expect.Equal(t, "instance", InstanceOf(one), instance)
		expect.Equal(t, "length", len(strings.TrimSuffix(one, "@"+instance)), tokenLen)
		if one == other || strings.Trim(one[:tokenLen], alphabet) != "" {
			t.Errorf("%q, %q", one, other)
		}
	}
}
