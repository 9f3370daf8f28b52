package keys

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

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
