package cacheguard

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
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
		expect.Must(t, expect.Err(fmt.Sscan(lines.Text(), &key, &value)))
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

// transactionProcess is a process with one transaction, in which the parent makes it take the steps that it names.
func transactionProcess(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	defer rdb.Close()
	ttl, _ := time.ParseDuration(os.Getenv("LEASE"))
	g := newGuard(t, rdb, Config{Prefix: os.Getenv("PREFIX"), LeaseTTL: ttl})
	ctx := context.Background()
	var in *Intent
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var err error
		switch step, names, _ := strings.Cut(lines.Text(), " "); step {
		case "intend":
			in, err = g.Intend(ctx, Changes{Keys: []string{names}})
		case "also":
			err = in.Also(ctx, Changes{Tags: []string{names}})
		case "done":
			err = in.Done(ctx)
		case "update": // in which it dies
			for range 100 { // its lease is so short that a busy machine may miss it
				err = g.Update(ctx, "another", func(ctx context.Context) error {
					if err := Also(ctx, Changes{Keys: []string{names}, Tags: []string{"shoes"}}); err != nil {
						return err
					}
					fmt.Println("named")
					select {}
				})
			}
		}
		fmt.Println(strings.Fields(lines.Text())[0], err)
	}
}

// The process is killed before the commit, between the commit and the end, or not at all; or it is paused before the end.
func TestNothingOlderThanACommitOutlastsTheIntentOfADeadProcess(t *testing.T) {
	if redistest.IsChild(t) {
		transactionProcess(t)
		return
	}
	t.Parallel()
	const lease = 300 * time.Millisecond
	for _, fate := range []string{"killed", "killed in an Update", "paused", "none"} {
		t.Run(fate, func(t *testing.T) {
			f := newFleet(t, standalone(t), 2, Config{
				RedisTimeout: bearing, TTL: time.Hour, StaleFor: time.Hour, LeaseTTL: lease, Local: LocalConfig{MaxEntries: 100, TTL: time.Hour},
			}).listening()
			child := redistest.Child(t, "TestNothingOlderThanACommitOutlastsTheIntentOfADeadProcess",
				"ADDR="+shared.Addr(), "LEASE="+lease.String(), "PREFIX="+f.guards[0].cfg.Prefix)
			value := "old"
			gets := func() (all []string) {
				for _, g := range f.guards {
					for _, key := range []string{"row", "list"} {
						load := returns(value)
						if key == "list" {
							load = tagged(value, "shoes")
						}
						v, err := Get(t.Context(), g, key, load)
						expect.ErrorIs(t, err)
						all = append(all, v)
					}
				}
				f.stored()
				return all
			}
			old, fresh := []string{"old", "old", "old", "old"}, []string{"new", "new", "new", "new"}
			for range 2 {
				expect.Equal(t, "before", fmt.Sprint(gets()), fmt.Sprint(old))
			}
			if fate == "killed in an Update" {
				child.WriteLine("update row")
				child.Expect("named")
			} else {
				child.WriteLine("intend row")
				child.Expect("intend <nil>")
				child.WriteLine("also shoes")
				child.Expect("also <nil>")
			}
			expect.Equal(t, "under the intent", fmt.Sprint(gets()), fmt.Sprint(old))
			slow := newSource("old")
			loading := async(f.guards[1], "slow", slow.loadTagged("shoes")) // from before the commit to after the end
			<-slow.begun
			value = "new" // the commit
			switch fate {
			case "paused":
				child.Pause()
			case "none":
				child.WriteLine("done")
				child.Expect("done <nil>")
				f.guards[1].keeper.RenewAll()
			default:
				child.Kill()
			}
			redistest.Await(t, "the old values are gone", func() bool { return fmt.Sprint(gets()) == fmt.Sprint(fresh) })
			redistest.Await(t, "the intent is over", func() bool { return !f.exists(f.intents("row")) || fate != "none" })
			close(slow.release)
			want(t, loading, "old")
			f.stored()
			expect.Equal(t, "what began before", mustGet(t, f.guards[0], "slow", tagged("new", "shoes")), "new")
			if fate == "paused" {
				child.Resume()
				child.WriteLine("done")
				child.Expect("done <nil>")
			}
			expect.Equal(t, "at last", fmt.Sprint(gets()), fmt.Sprint(fresh))
		})
	}
}

func TestAnIntentOutlivesItsTermWhileItsProcessLives(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing, TTL: time.Hour, LeaseTTL: 2 * time.Second}) // longer than a busy machine holds up a renewal
	in := mustIntend(t, f.guards[0], Changes{Keys: []string{"row"}, Tags: []string{"shoes"}})
	ends := func() float64 {
		return f.redis.ZRangeWithScores(context.Background(), f.intents("row"), 0, 0).Val()[0].Score
	}
	first, term := ends(), f.guards[0].keys.IntentTTL()
	redistest.Await(t, "it stands for longer than its term", func() bool {
		mustGet(t, f.guards[1], "row", tagged("old", "shoes"))
		if left := f.left(f.value("row")); left > term {
			t.Fatalf("a value lasts %v", left)
		}
		return ends() > first+1.5*float64(term.Milliseconds())
	})
	mustDone(t, in)
	expect.Equal(t, "afterwards", mustGet(t, f.guards[1], "row", tagged("new", "shoes")), "new")
}

// The server's clock is set back by an hour when the writer has died: its intent seems to last an hour longer.
func TestADeadWritersIntentEndsThoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{LeaseTTL: 100 * time.Millisecond, WaitTimeout: time.Minute}) // one load is in time
	ctx, db := context.Background(), newRow("v")
	now, err := f.redis.Time(ctx).Result()
	expect.Must(t, err)
	f.redis.HSet(ctx, f.intent("k"), "writer:dead", fmt.Sprint(now.Add(time.Hour).UnixMilli(), " ", 200))
	f.redis.Expire(ctx, f.intent("k"), time.Hour)
	redistest.Await(t, "loads are stored again", func() bool {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _ = Get(short, f.guards[0], "k", db.load) // may wait in vain
		return f.exists(f.value("k"))
	})
}
