package troubles

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// slowLoader makes the second instance wait for a load of the first one.
func (f *fleet) slowLoader() {
	f.ask(0, "/get?key=report&held=yes")
	f.ctl(0, "--prefix shop inspect report", `"report": missing`, "loaded by shop-1 for ")
	f.ask(1, "/get?key=report&held=yes")
}

// deadHolder kills the first instance during a load that the second one waits for.
func (f *fleet) deadHolder() {
	f.ask(0, "/get?key=report&held=yes")
	f.ctl(0, "--prefix shop inspect report", "loaded by shop-1 for ", "believed to be alive for another")
	f.instances[0].Kill()
	f.ask(1, "/get?key=report")
}

// saturatedMaxLoads makes the first instance begin three loads more than it may run.
func (f *fleet) saturatedMaxLoads() {
	for n := range maxLoads + 3 {
		f.ask(0, fmt.Sprintf("/get?key=report:%d&held=yes", n))
	}
}

func (f *fleet) frozenRedis() { f.server.Pause() }

// slowRedis has somebody run large commands, one after the other, until the test ends.
func (f *fleet) slowRedis() {
	ctx, stop := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	rdb := f.server.Client(f)
	for range 2 {
		busy.Go(func() {
			for n := int64(6_000_000); ctx.Err() == nil; {
				began := time.Now()
				_ = rdb.Eval(ctx, spin, nil, n).Err() // a drill may end the server first
				// A busy machine takes longer: but the library is to see a Redis that is slow, and not one that is silent.
				n = min(max(n*int64(2*spins)/int64(time.Since(began)), 10_000), 60_000_000)
			}
		})
	}
	f.Cleanup(func() {
		stop()
		busy.Wait()
	})
}

// spin takes about spins, and each of the two waits for the other.
const (
	spin  = `for i = 1, tonumber(ARGV[1]) do end`
	spins = 60 * time.Millisecond
)

func (f *fleet) fullRedis() {
	f.redis("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction")
}

func (f *fleet) missingRight() { f.redis("ACL", "SETUSER", "app", "-evalsha") }

// deadSubscription takes the channels away from instances that listen.
func (f *fleet) deadSubscription() {
	f.ask(0, "/get?key=a")
	redistest.Await(f, "an instance listens", func() bool { return f.listeners() > 0 })
	f.redis("ACL", "SETUSER", "app", "resetchannels")
}

// lockedTable makes loads of the first instance fail.
func (f *fleet) lockedTable() {
	for n := range pages {
		f.ask(0, fmt.Sprintf("/get?key=report:%d&fails=yes", n))
	}
}

func (f *fleet) damagedEntries() {
	f.redis("SET", "shop:{a}", "an entry of another version")
	for n := range pages {
		f.redis("SET", fmt.Sprintf("shop:{page:%d}", n), "an entry of another version")
	}
}

func (f *fleet) hotKey() {
	for range 20 {
		f.ask(0, "/get?key=home&times=2000")
	}
}

// heldLock makes the second instance wait for a lock of the first one.
func (f *fleet) heldLock() {
	f.ask(0, "/lock?name=import")
	f.ctl(0, "--lock-prefix jobs locks show import", "shop-1")
	f.ask(1, "/lock?name=import")
}

// forgottenIntent makes the first instance begin a transaction whose end it never reports.
func (f *fleet) forgottenIntent() { f.ask(0, "/intend?key=report") }

// hangingWrite makes the first instance begin an Update whose write does not return.
func (f *fleet) hangingWrite() { f.ask(0, "/update?key=report") }

// neverSubscribed takes the channels away before the first call that needs messages.
func (f *fleet) neverSubscribed() {
	f.redis("ACL", "SETUSER", "app", "resetchannels")
	f.ask(0, "/get?key=a")
}

func (f *fleet) goneRedis() { f.server.Kill() }

func (f *fleet) lostData() {
	f.ask(0, "/get?key=a")
	f.redis("FLUSHALL")
}

func (f *fleet) bypassed() {
	if code, said := f.run("--prefix", "shop", "bypass", "10m", "--yes"); code != 0 {
		f.Fatal(said)
	}
}

func (f *fleet) otherPassword() {
	f.redis("ACL", "SETUSER", "app", "resetpass", ">other")
	f.redis("CLIENT", "KILL", "USER", "app")
}

func (f *fleet) replica() { f.redis("REPLICAOF", "127.0.0.1", "1") }

func (f *fleet) lacksReplicas() { f.redis("CONFIG", "SET", "min-replicas-to-write", "1") }

// mistyped invalidates what nobody loads, by an instance that has loaded something: one that has not does not judge.
func (f *fleet) mistyped() {
	f.ask(0, "/get?key=news:1") // which the other work leaves alone
	f.ask(0, "/invalidate?key=pgae:1")
}

func (f *fleet) largeValue() { f.ask(0, "/get?key=archive&large=yes") }

func (f *fleet) panics() {
	for n := range pages {
		f.ask(0, fmt.Sprintf("/get?key=report:%d&panics=yes", n))
	}
}

func (f *fleet) hangingInstance() {
	f.instances[2].Pause()
	f.Cleanup(f.instances[2].Resume)
}

func (f *fleet) evicting() {
	f.redis("CONFIG", "SET", "maxmemory", "64mb", "maxmemory-policy", "allkeys-lru")
}

// tooManyClients lets nobody connect but who is.
func (f *fleet) tooManyClients() { f.redis("CONFIG", "SET", "maxclients", "1") }

// deadLockHolder kills the first instance, which has a lock that the second one waits for.
func (f *fleet) deadLockHolder() {
	f.ask(0, "/lock?name=import")
	redistest.Await(f, "it has the lock", func() bool {
		_, said := f.run("--lock-prefix", "jobs", "locks", "show", "import")
		return strings.Contains(said, "shop-1")
	})
	f.instances[0].Kill()
}

// silentWrite writes past the cache, which has the key.
func (f *fleet) silentWrite() {
	f.ask(0, "/get?key=price:42")
	f.ask(0, "/write")
	f.ask(0, "/get?key=price:42")
}
