package observe

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestCountsOfAllProcessorsAddUp(t *testing.T) {
	t.Parallel()
	var c Counts
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1600 {
				c.Add(i % Words)
			}
		})
	}
	all.Wait()
	for word, n := range c.Sum() {
		expect.Equal(t, fmt.Sprint("word ", word), n, 800)
	}
}

func TestTheSlowestLoadsAreRememberedForSomeMinutesEachKeyOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Loads
		run := func(key string, took time.Duration) {
			load := l.Begin(key, 1)
			time.Sleep(took)
			l.End(load, false)
		}
		for i := range 2 * slowest {
			run(fmt.Sprint("key", i), time.Duration(i)*time.Millisecond)
			run("again", time.Millisecond)
		}
		seen := l.Slowest()
		expect.Equal(t, "loads", len(seen), slowest)
		expect.Equal(t, "the slowest", seen[0].Key, fmt.Sprint("key", 2*slowest-1))
		time.Sleep(remember)
		run("later", time.Hour)
		expect.Equal(t, "an hour later", len(l.Slowest()), 1)
		time.Sleep(2*remember + time.Second)
		expect.Equal(t, "after that", len(l.Slowest()), 0)
	})
}

func TestLoadsThatRunAreShownTheLongestFirstAndCutWhereTheyAreLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Loads
		old := l.Begin("old", 3)
		time.Sleep(time.Second)
		long := l.Begin(strings.Repeat("x", 1<<20), 1)
		running, all := l.Running()
		expect.Equal(t, "all", all, 2)
		expect.Equal(t, "first", running[0].Key, "old")
		expect.Equal(t, "took", running[0].Took, time.Second)
		expect.Equal(t, "length", len(running[1].Key), shownKey)
		expect.Equal(t, "cut", running[1].Cut, true)
		l.End(old, true)
		l.End(long, false)
		_, all = l.Running()
		expect.Equal(t, "at the end", all, 0)
		expect.Equal(t, "failed", l.Slowest()[0].Failed, true)
	})
}

func TestOneIsNotMany(t *testing.T) {
	for n, want := range map[int]string{0: "0 loads wait", 1: "1 load waits", 2: "2 loads wait"} {
		expect.Equal(t, "count", Count(n, "load waits", "loads wait"), want)
	}
}
