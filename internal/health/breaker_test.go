package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

var errDown = fmt.Errorf("dial: %w", io.EOF)

func ignore() {}

// open makes a breaker that has just opened.
func open(t *testing.T, b *Breaker) {
	t.Helper()
	for range maxConsecutive {
		select {
		case <-b.Opened():
			t.Fatal("open too soon")
		default:
		}
		b.Record(errDown)
	}
	if _, err := b.Allow(); !errors.Is(err, ErrOpen) {
		t.Fatalf("Allow: %v", err)
	}
	<-b.Opened()
}

func TestBreakerOpensAfterFailuresInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(nil, ignore)
		for range 3 * maxConsecutive {
			b.Record(errDown)
			b.Record(nil)
			b.Record(nil)
		}
		open(t, b)
	})
}

// Successes of requests that were under way when the first one failed count too. Otherwise the failures among them would be in a row.
func TestBreakerCountsTheSuccessesThatWereUnderWayToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(nil, ignore)
		var underWay []Permit
		for range 30 * maxConsecutive {
			p, err := b.Allow()
			if err != nil {
				t.Fatal(err)
			}
			underWay = append(underWay, p)
		}
		for i, p := range underWay {
			if i%10 == 0 {
				p.Done(errDown)
			} else {
				p.Done(nil)
			}
		}
		if _, err := b.Allow(); err != nil {
			t.Errorf("one in ten has failed: %v", err)
		}
	})
}

func TestBreakerOpensWhenHalfFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(nil, ignore)
		for range minRequests / 2 {
			select {
			case <-b.Opened():
				t.Fatal("open too soon")
			default:
			}
			b.Record(errDown)
			b.Record(nil)
		}
		b.Record(errDown)
		if _, err := b.Allow(); !errors.Is(err, ErrOpen) {
			t.Errorf("Allow: %v", err)
		}
	})
}

func TestFailuresAreForgottenAfterTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(nil, ignore)
		for range minRequests/2 - 1 {
			b.Record(errDown)
			b.Record(nil)
		}
		time.Sleep(window + time.Second)
		b.Record(nil)
		b.Record(errDown)
		if _, err := b.Allow(); err != nil {
			t.Errorf("Allow: %v", err)
		}
	})
}

func TestOneOperationFindsOutWhetherRedisIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		b := newBreaker(func(open bool) { told = append(told, open) }, ignore)
		open(t, b)
		for _, outcome := range []error{errDown, reply("LOADING Redis is loading"), nil} {
			time.Sleep(shortestPause - time.Millisecond)
			if _, err := b.Allow(); !errors.Is(err, ErrOpen) {
				t.Fatalf("Allow, before the pause is over: %v", err)
			}
			time.Sleep(longestPause - shortestPause + 2*time.Millisecond)
			done, err := b.Allow()
			if err != nil {
				t.Fatalf("Allow, when the pause is over: %v", err)
			}
			if _, err := b.Allow(); !errors.Is(err, ErrOpen) {
				t.Fatalf("Allow, while another finds out: %v", err)
			}
			<-b.Opened()
			done.Done(outcome)
		}
		for range 2 * maxConsecutive {
			if _, err := b.Allow(); err != nil {
				t.Fatalf("Allow, when Redis is back: %v", err)
			}
		}
		select {
		case <-b.Opened():
			t.Error("open")
		default:
		}
		if len(told) != 2 || !told[0] || told[1] {
			t.Errorf("told %v, want open and closed", told)
		}
	})
}

func TestCancelledOperationSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(nil, ignore)
		for range 2 * minRequests {
			b.Record(context.Canceled)
		}
		open(t, b)
		time.Sleep(longestPause + time.Millisecond)
		done, err := b.Allow()
		if err != nil {
			t.Fatal(err)
		}
		done.Done(context.Canceled)
		if done, err = b.Allow(); err != nil {
			t.Fatalf("nobody finds out any more: %v", err)
		}
		done.Done(nil)
		b.Record(nil)
		if _, err := b.Allow(); err != nil {
			t.Errorf("Allow: %v", err)
		}
	})
}

func TestErrorsThatSayThatRedisCannotServe(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		io.EOF, context.DeadlineExceeded, redis.ErrPoolTimeout, errDown, reply("LOADING x"), reply("MASTERDOWN x"),
		reply("CLUSTERDOWN x"), reply("BUSY x"), fmt.Errorf("wrapped: %w", reply("LOADING x")),
		reply("ERR max number of clients reached"),
	} {
		if !Unavailable(err) {
			t.Errorf("%v: available", err)
		}
	}
	for _, err := range []error{
		nil, redis.Nil, reply("OOM x"), reply("READONLY x"), reply("MISCONF x"), reply("NOPERM x"), reply("MOVED 1 x"),
		reply("WRONGTYPE x"), reply("TRYAGAIN x"), reply("NOSCRIPT x"), reply("ERR syntax error"),
	} {
		if Unavailable(err) {
			t.Errorf("%v: unavailable", err)
		}
	}
}
