package mutex

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// table is what a lock protects: a number that its users read and write back incremented. It counts the writes, so a smaller number shows
// that updates were lost. If it is told to, it refuses a fence below one that it has seen.
type table struct {
	rdb redis.Scripter
	key string
}

var tableScript = redis.NewScript(`
if ARGV[1] ~= '' then
  if tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) > tonumber(ARGV[1]) then return -1 end
  redis.call('HSET', KEYS[1], 'fence', ARGV[1])
end
if ARGV[2] ~= '' then
  redis.call('HINCRBY', KEYS[1], 'writes', 1)
  redis.call('HSET', KEYS[1], 'value', ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], 600000)
return tonumber(redis.call('HGET', KEYS[1], 'value') or 0)`)

const refused = -1

// noFence is the fence of a user that does not care.
const noFence = ""

func (tb table) read(fence any) (int, error) {
	return tableScript.Run(context.Background(), tb.rdb, []string{tb.key}, fence, "").Int()
}

func (tb table) write(fence any, value int) (int, error) {
	return tableScript.Run(context.Background(), tb.rdb, []string{tb.key}, fence, value).Int()
}

func (f *fleet) table() table { return table{f.redis, f.key("k") + ":table"} }

func (f *fleet) field(name string) int {
	n, _ := f.redis.HGet(context.Background(), f.table().key, name).Int() // 0 before the first
	return n
}

func TestAFenceHoldsOffAHolderThatWasPaused(t *testing.T) {
	if redistest.IsChild(t) {
		holderProcess(t)
		return
	}
	t.Parallel()
	for _, verb := range []string{"fenced", "plain"} {
		f := newFleet(t, 1, Config{TTL: brisk})
		child := f.child(verb + " k")
		child.Expect("read")
		child.Pause() // with the value it has read
		l := f.lock(0, "k")
		value, err := f.table().read(l.Fence())
		if err == nil {
			_, err = f.table().write(l.Fence(), value+1)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(context.Background()); err != nil && !errors.Is(err, ErrLeaseLost) { // on a busy machine it is over
			t.Fatal(err)
		}
		child.Resume()
		child.WriteLine("go")
		child.Expect("written")
		if verb == "plain" {
			expect.Equal(t, "writes without fences", f.field("writes"), 2)
			expect.Equal(t, "value", f.field("value"), 1) // one is lost
		} else {
			expect.Equal(t, "writes with fences", f.field("writes"), 1)
			expect.Equal(t, "value", f.field("value"), 1)
		}
	}
}

func TestNoUpdateIsLostWhileProcessesAreKilledAndPaused(t *testing.T) {
	if redistest.IsChild(t) {
		holderProcess(t)
		return
	}
	t.Parallel()
	const processes = 4
	f := newFleet(t, 1, Config{TTL: 200 * time.Millisecond})
	children := make([]*redistest.Process, processes)
	for i := range children {
		children[i] = f.child("work k")
	}
	more := func() {
		goal := f.field("writes") + 1 + rand.IntN(20)
		redistest.Await(t, "more writes", func() bool { return f.field("writes") >= goal })
	}
	for range expect.Samples(6, 12) {
		more()
		i := rand.IntN(processes)
		if rand.IntN(2) == 0 {
			children[i].Kill()
			more()
			children[i] = f.child("work k")
		} else {
			children[i].Pause()
			more()
			children[i].Resume()
		}
	}
	for _, child := range children {
		child.Kill()
	}
	expect.Equal(t, "value", f.field("value"), f.field("writes"))
	t.Logf("%d writes", f.field("writes"))
}
