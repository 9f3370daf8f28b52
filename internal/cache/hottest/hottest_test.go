package hottest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func newKeys(t *testing.T, own int) *Keys {
	t.Helper()
	life := lifecycle.New()
	t.Cleanup(func() { life.Close(nil, nil) })
	return New(Config{Redis: redistest.DeclaredKeys(t, shared.Client(t)), Prefix: t.Name(), Timeout: time.Minute, Life: life, Keys: own, Every: time.Hour})
}

func top(t *testing.T, k *Keys, n int) string {
	t.Helper()
	keys, err := k.Top(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(keys, " ")
}

func TestCountsOfInstancesAndOfTheLastTwoPeriodsAddUp(t *testing.T) {
	t.Parallel()
	k, now := newKeys(t, 10), time.Now()
	k.add(now.Add(-3*period), map[string]int{"old": 99})
	k.add(now.Add(-period), map[string]int{"a": 5, "b": 4})
	k.add(now, map[string]int{"b": 3, "c": 6})
	k.add(now, map[string]int{"c": 2})
	expect.Equal(t, "the hottest", top(t, k, 10), "c b a")
	expect.Equal(t, "two of them", top(t, k, 2), "c b")
}

func TestAnInstanceTellsItsHottestOnly(t *testing.T) {
	t.Parallel()
	k := newKeys(t, 2)
	k.add(time.Now(), map[string]int{"a": 1, "b": 2, "c": 3})
	expect.Equal(t, "the hottest", top(t, k, 10), "c b")
}

func TestTheFleetsCountsAreBoundedAndGo(t *testing.T) {
	t.Parallel()
	k, counts := newKeys(t, Most+10), make(map[string]int)
	for i := range Most + 10 {
		counts[fmt.Sprint(i)] = 1 + i
	}
	now := time.Now()
	k.add(now, counts)
	rdb := shared.Client(t)
	expect.Equal(t, "keys", rdb.ZCard(t.Context(), k.set(now)).Val(), Most)
	expect.Equal(t, "the least", rdb.ZRange(t.Context(), k.set(now), 0, 0).Val()[0], "10")
	if left := rdb.PTTL(t.Context(), k.set(now)).Val(); left <= 0 || left > 2*period {
		t.Error("it stays for", left)
	}
}

func TestAKeyThatIsAskedForOftenIsCountedAlthoughManyOthersCameBefore(t *testing.T) {
	t.Parallel()
	k := newKeys(t, 10)
	for i := range counted {
		k.counts.countLocked(fmt.Sprint("first", i))
	}
	const often = 100
	for i := range often {
		k.counts.countLocked("often")
		k.counts.countLocked(fmt.Sprint("later", i))
	}
	expect.Equal(t, "at most so many keys", len(k.counts.of) <= counted, true)
	seen := k.counts.seenLocked(1)
	expect.Equal(t, "the hottest", ranked(seen, 1)[0], "often")
	if n := seen["often"]; n < often-1 || n > often {
		t.Errorf("it was seen %d times", n)
	}
}

func TestKeysThatAreTooLongAreNotCounted(t *testing.T) {
	t.Parallel()
	k := newKeys(t, 10)
	for range 1000 {
		k.Note(strings.Repeat("k", longest+1))
	}
	expect.Equal(t, "keys", len(k.counts.of), 0)
}
