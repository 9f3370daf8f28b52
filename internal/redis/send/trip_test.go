package send

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestCreditsGrowWithTheRoundTrip(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]int{
		0:                     firstCredits,
		1:                     1,
		perCredit - 1:         1,
		perCredit:             2,
		3 * perCredit:         4,
		20 * time.Millisecond: mostCredits,
	} {
		trip := trip{current: took}
		expect.Equal(t, "credits at "+took.String(), trip.credits(), want)
	}
}

func TestRoundTripIsTheShortestOfTheLastSecondOrTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var trip trip
		expect := func(want time.Duration) {
			t.Helper()
			expect.Equal(t, "shortest", trip.shortest(), want)
		}
		expect(0)
		trip.add(time.Now(), 7)
		trip.add(time.Now(), 3)
		trip.add(time.Now(), 5)
		expect(3)
		time.Sleep(tripWindow + 1)
		trip.add(time.Now(), 9)
		expect(3) // of the window before
		time.Sleep(tripWindow + 1)
		trip.add(time.Now(), 8)
		expect(8)
		trip.add(time.Now(), 0) // a clock may not move
		expect(1)
	})
}

func TestRedisThatIsFarHasSeveralParcelsUnderWay(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	lane := s.reads[0]
	lane.mu.Lock()
	lane.trip = trip{} // to be measured
	lane.mu.Unlock()
	s.proxy.Delay(20 * time.Millisecond)
	ask(t, s.Link, "k").answer()
	held := s.proxy.On(redistest.Command("get"), redistest.Hold)
	var all []asking
	k := keysOf(t, s.Link, mostCredits)
	for i, key := range k {
		all = append(all, ask(t, s.Link, key))
		redistest.Await(t, "it is sent", func() bool { return held.Count() == i+1 })
	}
	more := []asking{ask(t, s.Link, k[0]), ask(t, s.Link, k[1])}
	held.Release()
	for _, a := range append(all, more...) {
		a.expectAbsence()
	}
	if n := s.proxy.Commands(); n["get"] != 1+mostCredits || n["mget"] != 1 {
		t.Errorf("sent %v", n)
	}
}
