package admin

import (
	"context"
	"net/http"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/semaphore"
)

// lookLock is what a look-up finds of the first Locker's lock.
func lookLock(t *testing.T, h http.Handler, name string) (found foundLock) {
	t.Helper()
	parse(t, get(t, h, "/?view=lock&locker=0&name="+name, http.StatusOK), &found)
	return found
}

func TestASemaphoreShowsItsPermitsItsHoldersAndHowManyWait(t *testing.T) {
	t.Parallel()
	reports := newSemaphore(t, 2)
	h := NewHandler(Config{Lockers: []Locker{reports}, Allow: everything})
	leases := make(map[string]*semaphore.Lease)
	for range 2 {
		lease, err := reports.Lock(t.Context(), "reports")
		expect.ErrorIs(t, err)
		leases[lease.Token()] = lease
	}
	third := make(chan error, 1)
	go func() { // owner: the test; stop: the revocation; joined by receiving
		third <- reports.Do(context.Background(), "reports", func(context.Context, *semaphore.Lease) error { return nil })
	}()
	redistest.Await(t, "one waits", func() bool { return lookLock(t, h, "reports").Waiting == 1 })

	shown := look(t, h).Lockers[0]
	expect.Equal(t, "kind", shown.Kind, "semaphore")
	expect.Equal(t, "permits", shown.Permits, 2)
	expect.Equal(t, "held by this process", shown.Held, 2)
	expect.Equal(t, "mode", shown.Locks[0].Mode, "permit")
	found := lookLock(t, h, "reports")
	expect.Equal(t, "holders", found.Holders, 2)
	expect.Equal(t, "permits", found.Permits, 2)
	for _, by := range found.By {
		expect.Equal(t, "instance", by.Instance, "shop-1")
		if leases[by.Token] == nil || by.Left <= 0 {
			t.Errorf("%+v", by)
		}
	}
	status, said := post(h, "revoke", `{"name":"reports"}`, nil)
	expect.Equal(t, said, status, http.StatusOK)
	for _, lease := range leases {
		<-lease.Context().Done()
		expect.ErrorIs(t, context.Cause(lease.Context()), semaphore.ErrRevoked)
	}
	expect.ErrorIs(t, <-third)
	expect.Equal(t, "holders in the end", lookLock(t, h, "reports").Holders, 0)
}

func TestAQuorumShowsWhatItsServersSayAndCannotBeRevoked(t *testing.T) {
	t.Parallel()
	q := newQuorum(t)
	h := NewHandler(Config{Lockers: []Locker{q}, Allow: everything})
	lease, err := q.Lock(t.Context(), "import")
	expect.ErrorIs(t, err)
	shown := look(t, h).Lockers[0]
	expect.Equal(t, "kind", shown.Kind, "quorum")
	expect.Equal(t, "servers", shown.Servers, 3)
	expect.Equal(t, "revocable", shown.Revocable, false)
	expect.Equal(t, "fence", shown.Locks[0].Fence, lease.Fence())
	found := lookLock(t, h, "import")
	expect.Equal(t, "holder", found.Instance, "shop-1")
	expect.Equal(t, "answered", found.Answered, 3)
	expect.Equal(t, "named", len(found.By), 1)
	expect.Equal(t, "fence found", found.Fence, lease.Fence())
	status, said := post(h, "revoke", `{"name":"import"}`, nil)
	expect.Equal(t, said, status, http.StatusBadRequest)
	expect.ErrorIs(t, lease.Unlock(t.Context()))
}

func TestALockerWhoseMessagesDoNotArriveIsShown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	locks, err := mutex.New(s.Client(t, s.As(t, "~*", "resetchannels", "+@all")), mutex.Config{RedisTimeout: redistest.Patience, Prefix: "jobs"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = locks.Close() }) // always nil
	h := NewHandler(Config{Lockers: []Locker{locks}})
	expect.Equal(t, "deaf before it needs messages", look(t, h).Lockers[0].Deaf, false)
	lease, err := locks.Lock(t.Context(), "import")
	expect.ErrorIs(t, err)
	redistest.Await(t, "the page says so", func() bool { return look(t, h).Lockers[0].Deaf })
	expect.ErrorIs(t, lease.Unlock(t.Context()))
}
