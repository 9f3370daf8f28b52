package link

import (
	"strconv"
	"sync"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// handsStage is one where callers wait for what they sent themselves as long as for parcels.
func handsStage(t *testing.T) *stage {
	t.Helper()
	s := bareStage(t, patient)
	s.own = newOwnHands(s.client, patient, patient)
	return s
}

// inFlight is how many requests callers carry themselves, and workers.
func (s *stage) inFlight() (own, parcels int) {
	lane := s.reads[0]
	lane.mu.Lock()
	defer lane.mu.Unlock()
	for _, f := range lane.flying {
		if f.worker == nil {
			own++
		} else {
			parcels++
		}
	}
	return own, parcels
}

// get reads the keys, each on a goroutine of its own, and returns when as many are in flight as the test wants. The returned
// function waits for the answers.
func (s *stage) get(keys []string, own, parcels int) (answered func()) {
	s.t.Helper()
	var reads sync.WaitGroup
	for _, key := range keys {
		reads.Go(func() {
			if read, err := s.Get(s.t.Context(), key); err != nil || read.Err != nil {
				s.t.Errorf("read %+v, %v", read, err)
			}
		})
	}
	redistest.Await(s.t, strconv.Itoa(own)+" and "+strconv.Itoa(parcels)+" in flight", func() bool {
		a, b := s.inFlight()
		return a == own && b == parcels
	})
	return reads.Wait
}

func (s *stage) crowded() bool {
	lane := s.reads[0]
	lane.mu.Lock()
	defer lane.mu.Unlock()
	return lane.hands.crowded
}

func TestAFewCallersOfDifferentKeysThatAreNearSendForThemselves(t *testing.T) {
	t.Parallel()
	s := handsStage(t)
	k := keysOf(t, s.Link, mostHands+1)
	s.awaitCalm(k[0])
	held := s.proxy.On(redistest.Command("get"), redistest.Hold)
	answered := s.get(k[:mostHands], mostHands, 0)
	if s.crowded() {
		t.Error("they are a crowd")
	}
	last := ask(t, s.Link, k[mostHands])
	held.Remove()
	held.Release()
	answered()
	last.expect("")
}

func TestCallersOfOneKeyAndCrowdsShareParcels(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(k []string) []string{
		"one key":                 func(k []string) []string { return k[:1] },
		"one more than there may": func(k []string) []string { return k[mostHands:] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := handsStage(t)
			k := keysOf(t, s.Link, mostHands+1)
			s.awaitCalm(k[0])
			held := s.proxy.On(redistest.Command("get"), redistest.Hold)
			first := s.get(k[:mostHands], mostHands, 0)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if read, err := s.Get(t.Context(), second(k)[0]); err != nil || read.Err != nil {
					t.Errorf("read %+v, %v", read, err)
				}
			}()
			redistest.Await(t, "the crowd", s.crowded)
			held.Remove()
			held.Release()
			first()
			receive(t, done)
			for parcels := 1; s.crowded() || parcels < quietAfter; parcels++ {
				if !s.crowded() || parcels > quietAfter {
					t.Fatalf("after %d parcels: crowded is %v", parcels, s.crowded())
				}
				if read, err := s.Get(t.Context(), k[0]); err != nil || read.Err != nil {
					t.Fatalf("read %+v, %v", read, err)
				}
			}
		})
	}
}

func TestOneMoreParcelOfReadsIsUnderWayThanTheRoundTripAsksFor(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient) // it has hooks, so callers send nothing themselves
	s.reads[0].spare = spareReads
	k := keysOf(t, s.Link, 4)
	held := s.proxy.On(redistest.Command("get"), redistest.Hold)
	var all []asking
	for parcels := range 2 {
		all = append(all, ask(t, s.Link, k[parcels]))
		redistest.Await(t, "it is sent", func() bool { _, n := s.inFlight(); return n == parcels+1 })
	}
	all = append(all, ask(t, s.Link, k[2]), ask(t, s.Link, k[3]))
	held.Remove()
	held.Release()
	for _, a := range all {
		a.expect("")
	}
	s.sent.expect(t, k[:1], k[1:2], k[2:])
}

// awaitCalm returns when callers would send requests themselves, and nothing is in flight.
func (s *stage) awaitCalm(key string) {
	s.t.Helper()
	redistest.Await(s.t, "calm", func() bool {
		s.awaitOwnHands(key)
		own, parcels := s.inFlight()
		return own+parcels == 0 && !s.crowded()
	})
}
