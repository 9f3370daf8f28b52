package send

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
)

const lateAfter = 50 * time.Millisecond

func (l *Link) isHasty() { l.LateAfter = func(*breaker.Breaker) time.Duration { return lateAfter } }

// lateAt is after how long the read is told to be late; 0: it is answered before.
func lateAt(t *testing.T, r *Read) time.Duration {
	t.Helper()
	start := time.Now()
	late, err := r.WaitLate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !late {
		return 0
	}
	return time.Since(start)
}

func askNow(t *testing.T, l *Link, key string) *Read {
	t.Helper()
	read, err := l.Ask(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestReadIsLateAfterAWhileAndAnsweredAllTheSame(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(4 * lateAfter) }, func(t *testing.T, l *Link) {
		l.isHasty()
		start, read := time.Now(), askNow(t, l, "k")
		expect.Equal(t, "late after", lateAt(t, read), lateAfter)
		if err := read.Wait(t.Context()); err != nil || read.Err != nil {
			t.Errorf("read: %v, %v", err, read.Err)
		}
		expect.Equal(t, "answered after", time.Since(start), 4*lateAfter)
	})
}

func TestReadInTheQueueIsLateToo(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(4 * lateAfter) }, func(t *testing.T, l *Link) {
		l.isHasty()
		l.pin(shortest)
		askNow(t, l, "a")
		time.Sleep(lateAfter / 2)
		second := askNow(t, l, "b") // without a credit
		if after := lateAt(t, second); after < lateAfter || after > lateAfter*3/2 {
			t.Errorf("the second read is late after %v", after)
		}
	})
}

func TestReadThatIsAnsweredInTimeIsNotLate(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(lateAfter / 2) }, func(t *testing.T, l *Link) {
		l.isHasty()
		expect.Equal(t, "late after", lateAt(t, askNow(t, l, "k")), time.Duration(0))
	})
}

func TestReadIsNeverLateWithoutALimit(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(4 * lateAfter) }, func(t *testing.T, l *Link) {
		expect.Equal(t, "late after", lateAt(t, askNow(t, l, "k")), time.Duration(0))
	})
}

func TestReadTellsThatItHasBecomeLateAndThenThatItIsAnswered(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(4 * lateAfter) }, func(t *testing.T, l *Link) {
		l.isHasty()
		start, read := time.Now(), askNow(t, l, "k")
		for _, after := range []time.Duration{lateAfter, 4 * lateAfter} {
			expect.Equal(t, "answered", read.IsAnswered(), false)
			<-read.Answered()
			expect.Equal(t, "told after", time.Since(start), after)
		}
		expect.Equal(t, "answered in the end", read.IsAnswered(), true)
	})
}
