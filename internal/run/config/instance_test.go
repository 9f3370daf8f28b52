package config

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestTheDefaultInstanceIsOneThatIsAllowed(t *testing.T) {
	t.Parallel()
	var p Problems
	p.Instance(DefaultInstance())
	for _, host := range []string{"h", strings.Repeat("h", 63), "with space", "h\xff\x00ö", strings.Repeat("ö", 63)} {
		p.Instance(instanceOf(host, 1<<31))
	}
	expect.ErrorIs(t, p.Err())
}

func TestOfALongHostTheEndStays(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "instance", instanceOf(strings.Repeat("x", 60)+"-7d9f-abcde", 42), strings.Repeat("x", 36)+"-7d9f-abcde:42")
	expect.Equal(t, "instance", instanceOf("shop-1", 42), "shop-1:42")
}

func TestAnInstanceThatDoesNotFitOrCannotBeShownIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{strings.Repeat("x", MaxInstance+1), "a b", "a\nb", "a\x00", "\xff"} {
		var p Problems
		p.Instance(name)
		expect.Says(t, p.Err(), "Config.Instance")
	}
}
