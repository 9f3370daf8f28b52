package mutex

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// holderProcess is what the children of tests run. It does what its parent says, a line at a time.
func holderProcess(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	defer rdb.Close()
	ttl, _ := time.ParseDuration(os.Getenv("TTL"))
	k, err := New(rdb, Config{Prefix: os.Getenv("PREFIX"), TTL: ttl, RedisTimeout: redisTimeout, Fair: os.Getenv("FAIR") == "true"})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb, name string
		if _, err := fmt.Sscan(lines.Text(), &verb, &name); err != nil {
			t.Fatal(err)
		}
		switch verb {
		case "lock":
			if _, err := k.Lock(context.Background(), name); err != nil {
				t.Fatal(err)
			}
		case "fenced", "plain":
			increment(t, rdb, k, name, verb == "fenced", func() {
				fmt.Println("read")
				lines.Scan()
			})
			fmt.Println("written")
		case "work":
			for {
				increment(t, rdb, k, name, true, func() { <-time.After(time.Millisecond) }) // the others wait, and leave the processor to other tests
			}
		}
	}
}

// child starts a process, and says its first line to it.
func (f *fleet) child(line string) *redistest.Process {
	f.Helper()
	cfg := f.lockers[0].base.Config
	child := redistest.Child(f, f.Name(), "ADDR="+shared.Addr(), "PREFIX="+cfg.Prefix, "TTL="+cfg.TTL.String(),
		fmt.Sprintf("FAIR=%v", f.lockers[0].fair))
	child.WriteLine(line)
	return child
}

// increment does what the lock is for. between runs between reading and writing.
func increment(t *testing.T, rdb *redis.Client, k *Locker, name string, fenced bool, between func()) {
	t.Helper()
	tb := table{rdb, lockKey(k.base.Config.Prefix, name) + ":table"}
	var l *Lease
	err := ErrLeaseLost
	for errors.Is(err, ErrLeaseLost) { // by an answer that a busy machine had later than so short a lease
		l, err = k.Lock(context.Background(), name)
	}
	if err != nil {
		t.Fatal(err)
	}
	var fence any = noFence
	if fenced {
		fence = l.Fence()
	}
	value, err := tb.read(fence)
	between()
	if err == nil && value != refused {
		_, err = tb.write(fence, value+1)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Unlock(context.Background()) // that it was lost is what the fence is for
}
