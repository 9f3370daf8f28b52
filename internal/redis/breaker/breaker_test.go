package breaker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/leaks"
)

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

var errDown = fmt.Errorf("dial: %w", io.EOF)

func ignore() {}

// start makes a breaker whose probes the test answers.
func start(t *testing.T, onChange func(bool)) (b *Breaker, probes chan chan error) {
	t.Helper()
	life := lifecycle.New()
	t.Cleanup(func() { life.Close(context.Canceled, nil) })
	probes = make(chan chan error)
	return newBreaker(life, func() error {
		answer := make(chan error)
		select {
		case probes <- answer:
			return <-answer
		case <-life.Ending.Done():
			return context.Canceled
		}
	}, onChange, ignore), probes
}

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
		b, _ := start(t, nil)
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
		b, _ := start(t, nil)
		var underWay []Permit
		for range 30 * maxConsecutive {
			p, err := b.Allow()
			expect.Must(t, err)
			underWay = append(underWay, p)
		}
		for i, p := range underWay {
			if i%10 == 0 {
				p.Done(errDown)
			} else {
				p.Done(nil)
			}
		}
		expect.ErrorIs(t, expect.Err(b.Allow()))
	})
}

func TestBreakerOpensWhenHalfFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := start(t, nil)
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
		expect.ErrorIs(t, expect.Err(b.Allow()), ErrOpen)
	})
}

func TestFailuresAreForgottenAfterTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := start(t, nil)
		for range minRequests/2 - 1 {
			b.Record(errDown)
			b.Record(nil)
		}
		time.Sleep(window + time.Second)
		b.Record(nil)
		b.Record(errDown)
		expect.ErrorIs(t, expect.Err(b.Allow()))
	})
}

func TestProbesFindOutWhetherRedisIsBackAndNoOperationDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		b, probes := start(t, func(open bool) { told = append(told, open) })
		open(t, b)
		for _, outcome := range []error{errDown, context.Canceled, reply("LOADING Redis is loading"), nil} {
			before := time.Now()
			answer := <-probes
			if waited := time.Since(before); waited < shortestPause || waited > longestPause+time.Millisecond {
				t.Errorf("the probe came after %v", waited)
			}
			expect.ErrorIs(t, expect.Err(b.Allow()), ErrOpen)
			b.Record(nil)
			<-b.Opened()
			answer <- outcome
			synctest.Wait()
		}
		for range 2 * maxConsecutive {
			expect.Must(t, expect.Err(b.Allow()))
		}
		select {
		case <-b.Opened():
			t.Error("open")
		case <-probes:
			t.Error("a closed breaker probes")
		case <-time.After(time.Minute):
		}
		if len(told) != 2 || !told[0] || told[1] {
			t.Errorf("told %v, want open and closed", told)
		}
		open(t, b)
		close(<-probes)
	})
}

// An operation that began before the breaker opened may succeed late. It says nothing of Redis now.
func TestAnOperationThatBeganEarlierDoesNotCloseTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, probes := start(t, nil)
		uncounted, err := b.Allow()
		expect.Must(t, err)
		b.Record(errDown)
		counted, err := b.Allow()
		expect.Must(t, err)
		for range maxConsecutive {
			b.Record(errDown)
		}
		answer := <-probes
		answer <- errDown
		time.Sleep(b.pause)
		uncounted.Done(nil)
		counted.Done(nil)
		expect.Equal(t, "open", b.IsOpen(), true)
		close(<-probes)
	})
}

func TestCancelledOperationSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := start(t, nil)
		for range 2 * minRequests {
			b.Record(context.Canceled)
		}
		open(t, b)
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

// That Redis is not asked says nothing about the cause.
func TestAnOpenBreakerNamesWhatRedisFailedWithLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, probes := start(t, nil)
		open(t, b)
		_, err := b.Allow()
		expect.Equal(t, "error", err.Error(), ErrOpen.Error()+": "+errDown.Error())
		expect.Equal(t, "another's error is taken for an answer to this request", errors.Is(err, io.EOF), false)
		<-probes <- errors.New("connection refused")
		next := <-probes
		if _, err := b.Allow(); !strings.HasSuffix(err.Error(), "connection refused") {
			t.Errorf("after a probe: %v", err)
		}
		next <- nil
	})
}

func TestMain(m *testing.M) { leaks.Main(m) }

func TestPartsOfAClusterAreRangesOfSlots(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer func() { _ = rdb.Close() }()
	h := New(rdb, "shop", time.Second, nil)
	for i := range 10_000 {
		key := strconv.Itoa(i)
		part := h.Part(key)
		if low, high := part*keys.Slots/Parts, (part+1)*keys.Slots/Parts; keys.Slot(key) < low || keys.Slot(key) > high {
			t.Fatalf("slot %d is in part %d, which is from %d to %d", keys.Slot(key), part, low, high)
		}
		if h.Of(key) != h.Breaker(part) {
			t.Fatalf("key %q has the breaker of another part", key)
		}
	}
}
