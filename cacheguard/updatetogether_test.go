package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

func TestTheKeysOfAnUpdateManyShareTwoRequests(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	f := newFleetOn(t, rdb, Config{RedisTimeout: bearing}, rdb)
	counted, db := new(pipelines), newRow("old")
	update := func(keys []string) {
		t.Helper()
		expect.Equal(t, "UpdateMany", f.guards[0].UpdateMany(context.Background(), keys, db.write("new")), nil)
	}
	update([]string{"j", "k"}) // the server knows the scripts
	rdb.AddHook(counted)
	for _, n := range []int{2, 20, 1100} {
		before := counted.n.Load()
		update(numbered(0, n))
		expect.Equal(t, "requests", counted.n.Load()-before, 2)
	}
}

// It waits for one lock after the other, and so holds none that others may need to get on.
func TestUpdateManyGivesUpWhatItGotIfAnotherKeyIsTaken(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(*testing.T) arena{"standalone": standalone, "cluster": onCluster}, func(t *testing.T, _ string, build func(*testing.T) arena) {
		f := newFleet(t, build(t), 2, Config{RedisTimeout: bearing})
		db := newRow("old")
		taken := beginUpdate(f, 1, db, "new", "b")
		<-taken.began
		many := make(chan error, 1)
		go func() {
			many <- f.guards[0].UpdateMany(context.Background(), []string{"c", "a", "b"}, db.write("newest"))
		}()
		redistest.Await(t, "it waits", func() bool { return f.lockInfo("b").WaitingWriters == 1 })
		redistest.Await(t, "the last key is free", func() bool { return f.lockInfo("c").Token == "" && !f.exists(f.intent("c")) })
		expect.Equal(t, "announced", f.exists(f.intent("a")), false)
		expect.Equal(t, "another", f.guards[1].Update(context.Background(), "c", db.write("newer")), nil)
		taken.release <- nil
		expect.Equal(t, "UpdateMany", <-many, nil)
		for _, key := range []string{"a", "b", "c"} {
			f.expectUntouched(key, "newest", db)
			expect.Equal(t, key+": intent", f.exists(f.intent(key)), false)
			expect.Equal(t, key+": holder", f.lockInfo(key).Token, "")
		}
	})
}

// locksOf are the locks of the Guard's updates, for somebody who looks at them.
func locksOf(t *testing.T, g *Guard) *rwlock.Locker {
	t.Helper()
	k, err := rwlock.New(g.rdb, rwlock.Config{Prefix: g.cfg.Prefix, RedisTimeout: bearing})
	expect.Must(t, err)
	t.Cleanup(func() { _ = k.Close() }) // always nil
	return k
}

func (f *fleet) lockInfo(key string) rwlock.Info {
	info, err := locksOf(f.t, f.guards[1]).Inspect(context.Background(), key)
	expect.Must(f.t, err)
	return info
}

// Whatever is lost, on the way there or back, write is called once or not at all, Written says which, and neither lock nor intent stays.
func TestAnUpdateWhoseRequestsOrRepliesAreLostLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"lock_update", "unlock_update", "unlock_put"} {
		for _, fault := range []redistest.Fault{
			redistest.SwallowReply, redistest.DropReply, redistest.CutBefore, redistest.Hold, redistest.HoldReply,
			redistest.ReplyError("LOADING Redis is loading"), redistest.ReplyError("OOM command not allowed"),
		} {
			for _, keys := range [][]string{{rowKey}, {"a", "b", "c"}} {
				if many := len(keys) > 1; many && (script == "unlock_put" || fault != redistest.SwallowReply && fault != redistest.CutBefore) {
					continue
				}
				expect.Beside(t, script+", "+string(fault)+" "+keys[0], func(t *testing.T) {
					f, proxy := broken(t, shared, Config{RedisTimeout: patienceFor(fault), LeaseTTL: 2 * brisk})
					db, writes := newRow("old"), 0
					_ = f.guards[1].Update(context.Background(), "j", db.write("old")) // the server knows the scripts then
					rule := proxy.On(redistest.Script(protocol.Source(script)), fault).Times(1)
					write := func(ctx context.Context) error {
						writes++
						return db.write("new")(ctx)
					}
					var err error
					if script == "unlock_put" {
						err = rows(t, f, db)[0].Put(context.Background(), 1, func(ctx context.Context) (string, error) { return "new", write(ctx) })
					} else {
						err = f.guards[0].UpdateMany(context.Background(), keys, write)
					}
					<-rule.Hit()
					expect.Equal(t, "writes", writes, map[bool]int{true: 1, false: 0}[Written(err)])
					rule.Release()
					for _, key := range keys {
						redistest.Await(t, "lock and intent end", func() bool { return f.lockInfo(key).Token == "" && !f.exists(f.intent(key)) })
						for i := range f.guards {
							expect.Equal(t, "read", mustGet(t, f.guards[i], key, db.load), db.value.Load().(string))
						}
					}
				})
			}
		}
	}
}

// The caller has left, and what it may have got was given up. The request that arrives then gets nothing.
func TestALateRequestOfAnUpdateThatGaveUpTakesNothing(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{}, redistest.AsksAgain)
	db, held := newRow("old"), redistest.Script(protocol.Source("lock_update"))
	expect.Equal(t, "one that makes the scripts known", f.guards[0].Update(context.Background(), "k", db.write("old")), nil)
	heard := f.redis.Subscribe(context.Background(), f.guards[0].keys.Channel)
	t.Cleanup(func() { _ = heard.Close() })
	_, err := heard.Receive(redistest.Patiently(t))
	expect.Equal(t, "subscribed", err, nil)

	rule := proxy.On(held, redistest.Hold).Times(1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-rule.Hit()
		cancel()
	}()
	err = f.guards[0].Update(ctx, "k", func(context.Context) error { panic("written") })
	expect.ErrorIs(t, err, rwlock.ErrNotAcquired)
	notice := func() string {
		for {
			heard, err := heard.ReceiveMessage(redistest.Patiently(t))
			expect.Must(t, err)
			if !strings.Contains(heard.Payload, "=") { // which repeats how many there have been
				return heard.Payload
			}
		}
	}
	first := notice() // of what gave up
	rule.Release()
	expect.Equal(t, "the same notice", notice(), first) // of the request
	expect.Equal(t, "holder", f.lockInfo("k").Token, "")
	expect.Equal(t, "intent", f.exists(f.intent("k")), false)
}

// together is an update made of the scripts.
func together(f *fleet) *putStage {
	return &putStage{stage: stage{fleet: f, key: rand.Text(), token: rand.Text(), source: "old", together: true}}
}

func (s *putStage) mustPut(step int) {
	s.t.Helper()
	expect.Must(s.t, s.put(step, none))
}

func TestALateCopyOfAnUpdatesEndLeavesTheNextOneItsLockAndItsIntent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{TTL: time.Hour})
	first := together(f)
	first.mustPut(2)
	first.mustPut(5)
	expect.Equal(t, "stored", first.cached(), newOne)
	next := together(f)
	next.key = first.key
	next.mustPut(2)
	first.mustPut(5)
	expect.Equal(t, "holder", f.lockInfo(next.key).Token, next.token)
	expect.Equal(t, "intent", f.redis.HExists(context.Background(), f.intent(next.key), "writer:"+next.token).Val(), true)
	expect.Equal(t, "stored", next.cached(), nothing)
	next.mustPut(5) // its proof is gone
	expect.Equal(t, "stored", next.cached(), nothing)
	expect.Equal(t, "holder", f.lockInfo(next.key).Token, "")
	expect.Equal(t, "intent", f.exists(f.intent(next.key)), false)
}

// It would prove that nothing was invalidated meanwhile.
func TestASecondCopyOfAnUpdatesBeginningMakesNoNewProof(t *testing.T) {
	t.Parallel()
	for _, evicted := range []bool{false, true} {
		f := newFleet(t, standalone(t), 2, Config{TTL: time.Hour})
		s := together(f)
		s.mustPut(2)
		fence := s.fence
		mustInvalidate(t, f.guards[0], s.key)
		if evicted {
			f.redis.Del(context.Background(), f.intent(s.key))
		}
		s.mustPut(2)
		expect.Equal(t, "fence", s.fence, fence)
		expect.Equal(t, "intent", f.exists(f.intent(s.key)), true)
		s.mustPut(5)
		expect.Equal(t, "stored", s.cached(), nothing)
	}
}

// A process that died before it could give up, and whose request arrives after that.
func TestALateCopyOfAnUpdatesBeginningLastsNoLongerThanItsTTL(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{LeaseTTL: brisk})
	s, ctx := together(f), context.Background()
	s.mustPut(2)
	for what, key := range map[string]string{"intent": f.intent(s.key), "lock": f.value(s.key) + ":rw", "lease": f.lease(s.key)} {
		if f.redis.PTTL(ctx, key).Val() <= 0 {
			t.Errorf("the %s has no TTL", what)
		}
	}
	db := newRow("old")
	redistest.Await(t, "the next Update", func() bool {
		err := f.guards[1].Update(ctx, s.key, db.write("new"))
		if err != nil && !errors.Is(err, rwlock.ErrLeaseLost) { // which a machine that stands still may lose
			t.Error(err)
		}
		return err == nil
	})
	redistest.Await(t, "others store again", func() bool {
		mustGet(t, f.guards[0], s.key, db.load)
		return f.exists(f.value(s.key))
	})
}

// Somebody in this process waits for the lock: the next one does not try to be quicker.
func TestAnUpdateDoesNotOvertakeThoseThatWait(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing})
	db := newRow("old")
	first := beginUpdate(f, 0, db, "1", "k")
	<-first.began
	second := beginUpdate(f, 0, db, "2", "k")
	redistest.Await(t, "it waits", func() bool { return f.guards[0].locks.Awaited("k") })
	expect.Equal(t, "another key", f.guards[0].locks.Awaited("j"), false)
	first.release <- nil
	second.release <- nil
	expect.Equal(t, "errors", errors.Join(<-first.done, <-second.done), nil)
	expect.Equal(t, "at last", db.value.Load().(string), "2")
}
