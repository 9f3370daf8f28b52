package admin

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestTheSlowestLoadsAreRememberedForSomeMinutesEachKeyOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l loads
		run := func(key string, took time.Duration) {
			load := l.begin(key, 1)
			time.Sleep(took)
			l.end(load, false)
		}
		for i := range 2 * mostSlow {
			run(fmt.Sprint("key", i), time.Duration(i)*time.Millisecond)
			run("again", time.Millisecond)
		}
		seen := l.slowest()
		expect.Equal(t, "loads", len(seen), mostSlow)
		expect.Equal(t, "the slowest", seen[0].Key, fmt.Sprint("key", 2*mostSlow-1))
		time.Sleep(remember)
		run("later", time.Hour)
		expect.Equal(t, "an hour later", len(l.slowest()), 1)
		time.Sleep(2*remember + time.Second)
		expect.Equal(t, "after that", len(l.slowest()), 0)
	})
}

func TestLoadsThatRunAreShownTheLongestFirstAndCutWhereTheyAreLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l loads
		old := l.begin("old", 3)
		time.Sleep(time.Second)
		long := l.begin(strings.Repeat("x", 1<<20), 1)
		running := l.longest()
		expect.Equal(t, "all", len(running), 2)
		expect.Equal(t, "first", running[0].Key, "old")
		expect.Equal(t, "took", running[0].Took, time.Second)
		expect.Equal(t, "length", len(running[1].Key), longestShown)
		expect.Equal(t, "cut", running[1].Cut, true)
		l.end(old, true)
		l.end(long, false)
		expect.Equal(t, "at the end", len(l.longest()), 0)
		expect.Equal(t, "failed", l.slowest()[0].Failed, true)
	})
}
