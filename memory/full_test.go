package memory

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
)

// small is an engine with so many bytes, and a clock that the test moves.
func small(t *testing.T, bytes int64) (e *engine, clock *time.Time) {
	t.Helper()
	now := time.UnixMilli(1_700_000_000_000)
	client, e, err := open(Config{MaxBytes: bytes, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expect.Equal(t, "close", client.Close(), nil) })
	return e, &now
}

// scripted runs something as a script.
func scripted(e *engine, do func(r *run)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.begin()
	do(r)
	return r.err
}

func TestValuesGiveWayTheLeastRecentlyUsedFirst(t *testing.T) {
	t.Parallel()
	const each = overhead + 2*2 + 1000
	e, _ := small(t, 10*each)
	value := strings.Repeat("v", 1000)
	for i := range 10 {
		expect.Equal(t, "store", scripted(e, func(r *run) { r.cache("v"+strconv.Itoa(i), value, 60_000) }), nil)
	}
	_, err := e.get("v0") // the oldest is used
	expect.Equal(t, "get", err, nil)
	expect.Equal(t, "store", scripted(e, func(r *run) { r.cache("w0", value, 60_000) }), nil)
	_, err = e.get("v1")
	expect.ErrorIs(t, err, redis.Nil)
	_, err = e.get("v0")
	expect.Equal(t, "what was used stays", err, nil)
	expect.Equal(t, "used", e.keys.used, 10*each)
	expect.ErrorIs(t, scripted(e, func(r *run) { r.cache("large", strings.Repeat(value, 20), 60_000) }), errFull)
	expect.Equal(t, "one that never fits drives nothing out", e.keys.used, 10*each)
}

func TestWhatIsNoValueNeverGivesWay(t *testing.T) {
	t.Parallel()
	e, clock := small(t, 20_000)
	n := 0
	for ; ; n++ {
		err := scripted(e, func(r *run) { r.hset("lease"+strconv.Itoa(n), "token", "t"); r.pexpire("lease"+strconv.Itoa(n), 5000) })
		if err != nil {
			expect.ErrorIs(t, err, errFull)
			break
		}
		_ = scripted(e, func(r *run) { r.cache("value"+strconv.Itoa(n), strings.Repeat("v", 100), 60_000) }) // it may be refused
	}
	for i := range n {
		expect.Equal(t, "lease", scripted(e, func(r *run) { expect.Equal(t, "exists", r.exists("lease"+strconv.Itoa(i)), 1) }), nil)
	}
	expect.ErrorIs(t, scripted(e, func(r *run) { r.cache("value", "v", 60_000) }), errFull)
	expect.Equal(t, "what has written may write more", scripted(e, func(r *run) { r.del("none"); r.hset("lease0", "token", "t2") }), nil)
	*clock = clock.Add(5 * time.Second)
	expect.Equal(t, "when they have expired", scripted(e, func(r *run) { r.cache("value", "v", 60_000) }), nil)
	if e.keys.used > 1000 {
		t.Errorf("%d bytes are used", e.keys.used)
	}
}

// TestWhatIsCountedIsThere holds the count against what a walk leaves.
func TestWhatIsCountedIsThere(t *testing.T) {
	t.Parallel()
	e, clock := small(t, 1<<30)
	for i := range 2000 {
		key := "k" + strconv.Itoa(i%7)
		err := scripted(e, func(r *run) {
			switch i % 11 {
			case 0:
				r.cache(key, "value"+strconv.Itoa(i), 700)
			case 1, 2, 3:
				r.hset(key, "f"+strconv.Itoa(i%61), strconv.Itoa(i))
			case 4:
				r.hdel(key, "f"+strconv.Itoa(i%13), "f1")
			case 5, 6:
				r.zadd(key, int64(i%5), "m"+strconv.Itoa(i%17))
			case 7:
				r.zrem(key, "m"+strconv.Itoa(i%3))
			case 8:
				r.lpush(key, "x")
			case 9:
				r.ltrim(key, 0, 3)
			case 10:
				r.del(key)
			}
		})
		if err != nil && !errors.Is(err, errWrongType) {
			t.Fatal(err)
		}
		if i%100 == 99 {
			*clock = clock.Add(300 * time.Millisecond)
		}
	}
	var sum int64
	var due, values int
	for _, it := range e.keys.items {
		was := it.size
		e.keys.weigh(it)
		expect.Equal(t, it.key, it.size, was)
		sum += it.size
		due += int(count(it.ends != 0))
		values += int(count(it.gives))
	}
	expect.Equal(t, "used", e.keys.used, sum)
	expect.Equal(t, "due", len(e.keys.due), due)
	for it := e.keys.newest; it != nil; it = it.older {
		values--
	}
	expect.Equal(t, "values in order", values, 0)
	*clock = clock.Add(time.Hour)
	_ = scripted(e, func(r *run) { r.del("k0", "k1", "k2", "k3", "k4", "k5", "k6") })
	expect.Equal(t, "nothing left", e.keys.used, 0)
}

func TestALargeHashIsFoundByItsIndex(t *testing.T) {
	t.Parallel()
	var h hash
	for i := range 300 {
		expect.Equal(t, "new", h.set("f"+strconv.Itoa(i), strconv.Itoa(i)), true)
	}
	for i := 0; i < 300; i += 2 {
		expect.Equal(t, "removed", h.remove("f"+strconv.Itoa(i)), true)
	}
	for i := range 300 {
		value, there := h.get("f" + strconv.Itoa(i))
		expect.Equal(t, "there", there, i%2 == 1)
		if there {
			expect.Equal(t, "value", value, strconv.Itoa(i))
		}
	}
	for i := 1; i < 300; i += 2 {
		h.remove("f" + strconv.Itoa(i))
	}
	expect.Equal(t, "bytes", h.bytes, 0)
}
