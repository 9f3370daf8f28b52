package cacheguard

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// loaderProcess is what the children of the tests below run: for each line KEY VALUE from the parent, a Get whose
// loader says "begun" and returns the value when the parent says "go". Then it prints what the Get returned.
func loaderProcess(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	defer rdb.Close()
	ttl, _ := time.ParseDuration(os.Getenv("LEASE"))
	g := newGuard(t, rdb, Config{Prefix: os.Getenv("PREFIX"), LeaseTTL: ttl})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var key, value string
		if _, err := fmt.Sscan(lines.Text(), &key, &value); err != nil {
			t.Fatal(err)
		}
		got, err := Get(context.Background(), g, key, func(context.Context) (string, error) {
			fmt.Println("begun")
			lines.Scan()
			return value, nil
		})
		fmt.Println("got", got, err)
	}
}

// parent starts a child and a fleet in this process.
func parent(t *testing.T, n int, leaseTTL time.Duration) (*fleet, *redistest.Process) {
	f := newFleet(t, standalone(t), n, Config{})
	child := redistest.Child(t, t.Name(), "ADDR="+shared.Addr(), "LEASE="+leaseTTL.String(),
		"PREFIX="+f.guards[0].cfg.Prefix)
	return f, child
}

func TestAHolderThatIsKilledIsReplacedByExactlyOneOther(t *testing.T) {
	if redistest.IsChild(t) {
		loaderProcess(t)
		return
	}
	t.Parallel()
	f, child := parent(t, 4, brisk)
	f.listening()
	child.WriteLine("k dead")
	child.Expect("begun")
	db := newSource("v")
	var replies []<-chan reply[string]
	for _, g := range f.guards {
		replies = append(replies, async(g, "k", db.load))
	}
	f.awaitRegistered("k", len(f.guards))
	child.Kill()
	<-db.begun
	close(db.release)
	for _, r := range replies {
		want(t, r, "v")
	}
	expect.Equal(t, "loads", db.loads.Load(), 1)
	expect.Equal(t, "takeovers", f.events.takeovers.Load(), 1)
}

func TestAHolderThatWasPausedStoresNothingOverNewerData(t *testing.T) {
	if redistest.IsChild(t) {
		loaderProcess(t)
		return
	}
	t.Parallel()
	f, child := parent(t, 1, 200*time.Millisecond)
	child.WriteLine("k old")
	child.Expect("begun")
	child.Pause()
	mustInvalidate(t, f.guards[0], "k")
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("new")), "new")
	child.Resume()
	child.WriteLine("go")
	child.Expect("got old <nil>") // it began before the Invalidate
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", unwanted[string](t)), "new")

	// The same without a write: another instance took the lease over, and stored.
	child.WriteLine("j slow")
	child.Expect("begun")
	child.Pause()
	expect.Equal(t, "value", mustGet(t, f.guards[0], "j", returns("first")), "first")
	child.Resume()
	child.WriteLine("go")
	child.Expect("got slow <nil>")
	expect.Equal(t, "value", mustGet(t, f.guards[0], "j", unwanted[string](t)), "first")
}

func TestInvalidateStopsTheLoadsOfAnotherProcess(t *testing.T) {
	if redistest.IsChild(t) {
		loaderProcess(t)
		return
	}
	t.Parallel()
	f, child := parent(t, 1, time.Minute)
	for i := range 50 {
		key := fmt.Sprint("k", i)
		child.WriteLine(key + " old")
		child.Expect("begun")
		mustInvalidate(t, f.guards[0], key)
		child.WriteLine("go")
		child.Expect("got old <nil>")
		expect.Equal(t, key, mustGet(t, f.guards[0], key, returns("new")), "new")
		child.WriteLine(key + " unused") // a Get of the other process, after the Invalidate
		child.Expect("got new <nil>")
	}
}
