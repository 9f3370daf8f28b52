package rwlock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// lockProcess is what the children of the tests below run. On "Lock" or "RLock" from the parent it says "asks", takes the lock and says
// "holds". On "Unlock" it gives it up and says how it ended.
func lockProcess(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	defer rdb.Close()
	ttl, _ := time.ParseDuration(os.Getenv("TTL"))
	k, err := New(rdb, Config{Prefix: os.Getenv("PREFIX"), TTL: ttl, RedisTimeout: redisTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	var l *Lease
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch how := lines.Text(); how {
		case "Lock", "RLock":
			fmt.Println("asks")
			err = ErrLeaseLost
			for errors.Is(err, ErrLeaseLost) { // it was stopped between its request and the answer: that lease is over
				l, err = map[string]take{"Lock": (*Locker).Lock, "RLock": (*Locker).RLock}[how](k, context.Background(), "a")
			}
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println("holds")
		case "Unlock":
			err := l.Unlock(context.Background())
			fmt.Println("lost", errors.Is(err, ErrLeaseLost))
		}
	}
}

// family starts a fleet in this process and children beside it.
func family(t *testing.T, ttl time.Duration, children int) (*fleet, []*redistest.Process) {
	t.Helper()
	f := newFleet(t, standalone(t), 2, Config{TTL: ttl}).listening()
	var ps []*redistest.Process
	for range children {
		ps = append(ps, redistest.Child(t, t.Name(), "ADDR="+shared.Addr(), "PREFIX="+f.prefix, "TTL="+ttl.String()))
	}
	return f, ps
}

func takes(t *testing.T, child *redistest.Process, how string) {
	t.Helper()
	child.WriteLine(how)
	child.Expect("asks")
	child.Expect("holds")
}

func TestHolderThatIsKilledCostsItsLease(t *testing.T) {
	if redistest.IsChild(t) {
		lockProcess(t)
		return
	}
	t.Parallel()
	f, children := family(t, brisk, 2)
	for i, how := range []string{"Lock", "RLock"} {
		takes(t, children[i], how)
		w := wait(t, f.lockers[0], (*Locker).Lock, "a")
		f.awaitWaiting("a", 1, 0)
		r := wait(t, f.lockers[1], (*Locker).RLock, "a")
		f.awaitWaiting("a", 1, 1)
		children[i].Kill()
		if how == "Lock" {
			letGo(t, r.Got()) // after a writer the readers come first
			letGo(t, w.Got())
			continue
		}
		letGo(t, w.Got())
		letGo(t, r.Got())
	}
}

func TestReaderThatIsKilledLeavesOtherReadersTheirs(t *testing.T) {
	if redistest.IsChild(t) {
		lockProcess(t)
		return
	}
	t.Parallel()
	f, children := family(t, brisk, 1)
	long := must(t, f.join(shared.Client(t), Config{TTL: time.Minute, FixedLease: true}), (*Locker).RLock, "a")
	takes(t, children[0], "RLock")
	expect.Equal(t, "readers", f.info("a").Readers, 2)
	children[0].Kill()
	redistest.Await(t, "the dead reader's lease is over", func() bool { return f.info("a").Readers == 1 })
	if left := f.info("a").Left; left < 30*time.Second {
		t.Errorf("the other one's lease ends in %v", left)
	}
	unlock(t, long)
}

func TestWaiterThatIsKilledIsPassedOver(t *testing.T) {
	if redistest.IsChild(t) {
		lockProcess(t)
		return
	}
	t.Parallel()
	f, children := family(t, 10*time.Second, 2)
	held := must(t, f.lockers[0], (*Locker).Lock, "a")
	for i, how := range []string{"Lock", "RLock"} {
		children[i].WriteLine(how)
		children[i].Expect("asks")
		f.awaitWaiting("a", 1, i)
	}
	w := wait(t, f.lockers[1], (*Locker).Lock, "a")
	f.awaitWaiting("a", 2, 1)
	children[0].Kill()
	children[1].Kill()
	unlock(t, held) // the dead are granted the lock, if they are not found dead before
	unlock(t, w.Got())
}

func TestHolderThatWasPausedFindsItsLeaseLost(t *testing.T) {
	if redistest.IsChild(t) {
		lockProcess(t)
		return
	}
	t.Parallel()
	f, children := family(t, brisk, 1)
	for _, how := range []string{"Lock", "RLock"} {
		takes(t, children[0], how)
		w := wait(t, f.lockers[0], (*Locker).Lock, "a")
		children[0].Pause()
		l := w.Got()
		children[0].Resume()
		children[0].WriteLine("Unlock")
		children[0].Expect("lost true")
		expect.Equal(t, "holder", f.info("a").Token, l.Token())
		unlock(t, l)
	}
}

func TestWaiterThatWasPausedAsksAgain(t *testing.T) {
	if redistest.IsChild(t) {
		lockProcess(t)
		return
	}
	t.Parallel()
	f, children := family(t, 10*time.Second, 1)
	held := must(t, f.lockers[0], (*Locker).Lock, "a")
	children[0].WriteLine("Lock")
	children[0].Expect("asks")
	f.awaitWaiting("a", 1, 0)
	children[0].Pause()
	unlock(t, held) // the paused one is granted the lock
	next := wait(t, f.lockers[1], (*Locker).Lock, "a")
	l := next.Got() // when that grant is over
	children[0].Resume()
	f.awaitWaiting("a", 1, 0)
	expect.Equal(t, "holder", f.info("a").Token, l.Token())
	unlock(t, l)
	children[0].Expect("holds")
}
