package lately

import (
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestAKeyIsKnownForAsLongAsItCounts(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Unix(0, 0))
	k := New[string](manual.Clock())
	asked := func(key string) string {
		what, _ := k.Asked(key)
		return what
	}
	expect.Equal(t, "it is known", k.Touch("a"), false)
	k.Add("a", time.Minute, "how")
	expect.Equal(t, "it is known", k.Touch("a"), true)
	expect.Equal(t, "at once", asked("a"), "how")
	manual.Advance(time.Minute)
	expect.Equal(t, "at its end", asked("a"), "how")
	expect.Equal(t, "it is known", k.Touch("a"), true)
	manual.Advance(time.Minute)
	expect.Equal(t, "asked for again", asked("a"), "how")
	manual.Advance(2 * time.Minute)
	expect.Equal(t, "long ago", asked("a"), "")
	for range k.All() {
		t.Error("one was asked for lately")
	}
}

func TestTheKeysAreBounded(t *testing.T) {
	t.Parallel()
	k := New[int](clock.Clock{})
	for i := range most + 10 {
		k.Add(fmt.Sprint(i), time.Hour, i)
	}
	n := 0
	for range k.All() {
		n++
	}
	expect.Equal(t, "so many at most", n <= most, true)
	expect.Equal(t, "the last is there", k.Touch(fmt.Sprint(most+9)), true)
}
