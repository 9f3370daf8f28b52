package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Each test plays the script that a waiter asks.

var errDown = errors.New("redis is down")

// desk is a waiter, and what it asks and is answered.
type desk struct {
	*Waiter
	rdb     *redis.Client
	asked   chan string // the inboxes that were to be registered
	answers chan reply
	stop    context.CancelCauseFunc
}

type reply struct {
	Answer
	err error
}

func newDesk(t *testing.T, grace time.Duration) *desk {
	t.Helper()
	rdb := shared.Client(t)
	in, release := wake.Open(rdb, "test")
	t.Cleanup(release)
	in.Start()
	redistest.Await(t, "an address", func() bool { return in.Address() != "" })
	d := &desk{rdb: rdb, asked: make(chan string, 100), answers: make(chan reply, 100)}
	ctx, stop := context.WithCancelCause(context.Background())
	d.stop = stop
	t.Cleanup(func() { stop(nil) })
	d.Waiter = &Waiter{
		Inbox: in, ID: rand.Text(), Grace: grace, Patience: 300 * time.Millisecond, Ended: ctx,
		Claim: d,
	}
	return d
}

func (d *desk) Ask(ctx context.Context, inbox string) (Answer, error) {
	sent := time.Now()
	d.asked <- inbox
	select {
	case r := <-d.answers:
		r.Sent = sent
		return r.Answer, r.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

func (d *desk) Parse(body string) (int64, bool) {
	n, err := strconv.ParseInt(body, 10, 64)
	return n, err == nil
}

type result struct {
	Grant
	err error
}

func (d *desk) wait(ctx context.Context) <-chan result {
	c := make(chan result, 1)
	go func() { // owner: the test; ends with the wait; joined by receiving
		g, err := d.Wait(ctx)
		c <- result{g, err}
	}()
	return c
}

func (d *desk) tell(t *testing.T, inbox, body string) {
	t.Helper()
	frame := fmt.Sprintf("%d:%s%s", len(d.ID), d.ID, body)
	expect.Must(t, d.rdb.Publish(t.Context(), inbox, frame).Err())
}

var held = reply{Answer: Answer{Left: time.Hour}}

func TestAGrantByReplyIsMeasuredFromBeforeItWasAskedFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Hour)
	before := time.Now()
	c := d.wait(t.Context())
	<-d.asked
	asked := time.Now()
	d.answers <- reply{Answer: Answer{Granted: true, Fence: 7, Length: time.Minute}}
	got := <-c
	if got.err != nil || got.Fence != 7 || got.Length != time.Minute || got.Short {
		t.Errorf("got %+v", got)
	}
	if got.Sent.Before(before) || got.Sent.After(asked) {
		t.Error("measured from another time")
	}
}

func TestAGrantByMessageIsMeasuredFromTheLastRequest(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Hour)
	c := d.wait(t.Context())
	inbox := <-d.asked
	asked := time.Now()
	d.answers <- held
	d.tell(t, inbox, "8")
	got := <-c
	if got.err != nil || got.Fence != 8 || got.Length != time.Hour || !got.Short || got.Sent.After(asked) {
		t.Errorf("got %+v", got)
	}
}

func TestAMessageThatIsNoGrantMakesTheWaiterAsk(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Hour)
	c := d.wait(t.Context())
	inbox := <-d.asked
	d.answers <- held
	d.tell(t, inbox, "?")
	<-d.asked
	d.answers <- reply{Answer: Answer{Granted: true, Fence: 9, Length: time.Hour}}
	expect.Equal(t, "fence", (<-c).Fence, 9)
}

func TestAWaiterShowsThatItIsAliveAndAsksWhenTheHoldersLeaseEnds(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]struct{ grace, left time.Duration }{
		"heartbeat": {90 * time.Millisecond, time.Hour},
		"lease":     {time.Hour, 10 * time.Millisecond},
	} {
		expect.Beside(t, name, func(t *testing.T) {
			desk := newDesk(t, d.grace)
			c := desk.wait(t.Context())
			for range 5 {
				<-desk.asked
				desk.answers <- reply{Answer: Answer{Left: d.left}}
			}
			desk.stop(errDown)
			for len(c) == 0 {
				select {
				case <-desk.asked:
					desk.answers <- held
				case got := <-c:
					expect.ErrorIs(t, got.err, errDown)
					return
				}
			}
		})
	}
}

func TestTheFirstErrorIsReturnedAndALaterOneIsBorneForAWhile(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Hour)
	c := d.wait(t.Context())
	d.answers <- reply{err: errDown}
	expect.ErrorIs(t, (<-c).err, errDown)
	d = newDesk(t, 30*time.Millisecond)
	c = d.wait(t.Context())
	d.answers <- held
	d.answers <- reply{err: errDown}
	for asks := 0; ; asks++ {
		select {
		case <-d.asked:
			if asks > 1 {
				d.answers <- reply{err: errDown}
			}
		case got := <-c:
			if !errors.Is(got.err, errDown) || asks < 3 {
				t.Errorf("%v after %d requests", got.err, asks)
			}
			return
		}
	}
}

func TestAContextEndsTheWaitWithItsCause(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Hour)
	ctx, cancel := context.WithCancelCause(t.Context())
	c := d.wait(ctx)
	<-d.asked
	d.answers <- held
	cancel(errDown)
	expect.ErrorIs(t, (<-c).err, errDown)
}

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func FuzzParseGrant(f *testing.F) {
	for _, seed := range []string{"", ":", "1:2", "1:", ":2", "-1:2", "9223372036854775808:1", "1:2:3", "+1:1", "01:1", "1: 2", "0x1:1"} {
		f.Add(seed, int64(1), int64(2))
	}
	f.Fuzz(func(t *testing.T, body string, ticket, fence int64) {
		if _, granted := ParseGrant(body, ticket); granted {
			if _, later := ParseGrant(body, ticket-1); !later && ticket-1 < ticket {
				t.Errorf("%q is for ticket %d, and not for the one before it", body, ticket)
			}
		}
		if got, granted := ParseGrant(fmt.Sprintf("%d:%d", ticket, fence), ticket); !granted || got != fence {
			t.Errorf("the grant for ticket %d with fence %d is %d, %t", ticket, fence, got, granted)
		}
	})
}
