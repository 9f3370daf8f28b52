package mutex

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch/observe"
)

func TestAQuorumShowsTheHolderThatAMajorityOfItsServersNames(t *testing.T) {
	t.Parallel()
	c := newCouncil(t)
	q := c.quorum(Config{TTL: time.Hour, Instance: "shop-1"})
	seen := q.observed()
	look := func() observe.Lock {
		t.Helper()
		lock, err := seen.Inspect(t.Context(), "k")
		expect.ErrorIs(t, err)
		return lock
	}
	free := look()
	expect.Equal(t, "holders of a free lock", free.Holders+len(free.By), 0)
	expect.Equal(t, "answers", free.Answered, 5)

	for i := range 2 { // too few for a lock
		c.run(i, anothers(lockKey(q.base.Config.Prefix, "k")).asking(time.Minute, 0, 0, ""))
	}
	expect.Equal(t, "holders by a minority", look().Holders, 0)
	lease := must(t)(q.TryLock(t.Context(), "k"))
	held := look()
	expect.Equal(t, "holder", held.Token, lease.Token())
	expect.Equal(t, "instance", held.Instance, "shop-1")
	expect.Equal(t, "fence", held.Fence, lease.Fence())
	expect.Equal(t, "named by", len(held.By), 2)
	expect.Equal(t, "servers that name the holder", held.By[0].Servers, 3)
	expect.Equal(t, "servers that name another", held.By[1].Servers, 2)
	expect.Equal(t, "its lease is as long as a majority has it", held.Left > 50*time.Minute, true)

	mine := seen.Held()
	expect.Equal(t, "held here", len(mine), 1)
	expect.Equal(t, "name", mine[0].Name, "k")
	expect.Equal(t, "fence here", mine[0].Fence, lease.Fence())
	expect.Equal(t, "can be revoked", seen.Revoke != nil, false)
}

func TestAQuorumIsLookedAtAsLongAsAMajorityAnswers(t *testing.T) {
	t.Parallel()
	c := newCouncil(t)
	q := c.quorum(Config{TTL: time.Hour})
	lease := must(t)(q.TryLock(t.Context(), "k"))
	seen := q.observed()
	redistest.Await(t, "all servers have granted it", func() bool {
		lock, err := seen.Inspect(t.Context(), "k")
		return err == nil && len(lock.By) == 1 && lock.By[0].Servers == 5
	})
	for i := range 2 {
		c.proxies[i].Refuse(true)
	}
	lock, err := seen.Inspect(t.Context(), "k")
	expect.ErrorIs(t, err)
	expect.Equal(t, "answers", lock.Answered, 3)
	expect.Equal(t, "holder", lock.Token, lease.Token())
	c.proxies[2].Refuse(true)
	if _, err := seen.Inspect(t.Context(), "k"); err == nil {
		t.Error("two servers of five are no majority")
	}
	for i := range 3 {
		c.proxies[i].Refuse(false)
	}
	if _, err := q.observed().Inspect(t.Context(), ""); err == nil {
		t.Error("an empty name")
	}
}
