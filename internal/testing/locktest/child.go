package locktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// childName is the test that children run.
const childName = "TestAProcessOfTheSuite"

// Child is what a child process does: what its parent says, a line at a time.
func Child(t *testing.T, kind Kind) {
	if !redistest.IsChild(t) {
		t.Skip("it is for child processes")
	}
	ttl, _ := time.ParseDuration(os.Getenv("TTL"))
	k := kind.Open(t, os.Getenv("ADDR"), Config{Prefix: os.Getenv("PREFIX"), TTL: ttl, Timeout: ttl / 2})
	commands := bufio.NewScanner(os.Stdin)
	var l Lease
	for commands.Scan() {
		switch commands.Text() {
		case "lock":
			l = locked(t, k)
			fmt.Println("locked", l.Fence())
		case "state":
			fmt.Println(l.Context().Err() != nil, errors.Is(context.Cause(l.Context()), kind.LeaseLost), l.Unlock(context.Background()) != nil)
		case "exhaust":
			exhaust()
		case "storm":
			work(t, k, os.Getenv("STORE"))
		}
	}
}

// locked is a lock that was asked for again if it was lost at once, as the machine stood still.
func locked(t *testing.T, k Locks) (l Lease) {
	await(t, "a lock", func() bool {
		var err error
		l, err = k.Lock(context.Background(), "x")
		return err == nil
	})
	return l
}

// child starts a process, and says its first line to it.
func (b *bench) child(line string, env ...string) *redistest.Process {
	b.Helper()
	cfg := b.short()
	c := redistest.Child(b, childName, append(env, "ADDR="+b.server.Addr, "PREFIX="+cfg.Prefix, "TTL="+cfg.TTL.String())...)
	c.WriteLine(line)
	return c
}

// fenceOf is the fence of the lock that the child says it has.
func (b *bench) fenceOf(c *redistest.Process) (fence int64) {
	b.Helper()
	line, err := c.ReadLine(patient(b))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Sscanf(line, "locked %d", &fence); err != nil {
		b.Fatalf("%q: %v", line, err)
	}
	return fence
}

func killedHolder(b *bench) {
	holder := b.child("lock")
	fence := b.fenceOf(holder)
	next := b.ask(patient(b), b.open())
	holder.Kill()
	l := b.granted(next)
	expectGreater(b, l.Fence(), fence)
	b.unlock(l)
	b.awaitAsking(0)
}

func killedWaiter(b *bench) {
	l := b.lock(b.open())
	waiter := b.child("lock")
	waits := b.awaitAsking(2)
	next := b.ask(patient(b), b.open())
	if waits {
		b.awaitAsking(3)
	}
	waiter.Kill()
	b.unlock(l)
	b.unlock(b.granted(next))
	b.awaitAsking(0)
}

func frozenHolder(b *bench) {
	holder := b.child("lock")
	fence := b.fenceOf(holder)
	next := b.ask(patient(b), b.open())
	holder.Pause()
	l := b.granted(next)
	expectGreater(b, l.Fence(), fence)
	holder.Resume()
	holder.WriteLine("state")
	holder.Expect("true true true")
	if err := l.Context().Err(); err != nil {
		b.Error("the frozen holder has cost the next one its lease:", err)
	}
	b.unlock(l)
}

func expectGreater(b *bench, fence, than int64) {
	b.Helper()
	if fence <= than {
		b.Errorf("fence %d after %d", fence, than)
	}
}
