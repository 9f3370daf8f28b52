package send

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestLoneReadGoesOutAsOnePlainGet(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	key := keysOf(t, s.Link, 1)[0]
	s.set(key, "v")
	ask(t, s.Link, key).expect("v")
	ask(t, s.Link, key).expect("v")
	s.sent.expect(t, []string{key}, []string{key})
	if s.sent.piped[0] {
		t.Error("in a pipeline")
	}
	expect.Equal(t, "GETs", s.proxy.Commands()["get"], 2)
}

func TestReadsThatCannotBeSentYetShareTheNextParcel(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keysOf(t, s.Link, 3)
	for _, key := range k {
		s.set(key, "value of "+key)
	}
	held := s.hold("get", redistest.Hold)
	first := ask(t, s.Link, k[0])
	receive(t, held.Hit())
	order := []int{1, 2, 0, 2, 1, 1}
	var later []asking
	for _, i := range order {
		later = append(later, ask(t, s.Link, k[i]))
	}
	held.Release()
	first.expect("value of " + k[0])
	for n, i := range order {
		later[n].expect("value of " + k[i])
	}
	s.sent.expect(t, []string{k[0]}, []string{k[1], k[2], k[0]})
}

func TestKeyIsReadOncePerParcelHoweverManyAsk(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	key := keysOf(t, s.Link, 1)[0]
	s.set(key, "v")
	held := s.hold("get", redistest.Hold)
	first := ask(t, s.Link, key)
	receive(t, held.Hit())
	var later []asking
	for range 50 {
		later = append(later, ask(t, s.Link, key))
	}
	held.Release()
	for _, a := range later {
		expect.Equal(t, "the read for callers of one parcel", a.answer(), later[0].answer())
	}
	if first.answer() == later[0].answer() {
		t.Error("a caller shares a read that had been sent when it asked")
	}
	s.sent.expect(t, []string{key}, []string{key})
}

func TestCallerNeverReceivesAValueReadBeforeItAsked(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	key := keysOf(t, s.Link, 1)[0]
	s.set(key, "old")
	held := s.hold("get", redistest.HoldReply)
	first := ask(t, s.Link, key)
	receive(t, held.Hit()) // Redis has read "old"
	s.set(key, "new")
	second := ask(t, s.Link, key)
	held.Release()
	first.expect("old")
	second.expect("new")
}

func TestAbsenceAnswersOnlyThoseWhoAskedBeforeItWasRead(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	key := keysOf(t, s.Link, 1)[0]
	held := s.hold("get", redistest.HoldReply)
	first := ask(t, s.Link, key)
	receive(t, held.Hit())
	s.set(key, "v")
	second := ask(t, s.Link, key)
	held.Release()
	first.expectAbsence()
	second.expect("v")
}

func TestContextLetsGoOnlyItsOwnCaller(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keysOf(t, s.Link, 2)
	s.set(k[0], "v0")
	s.set(k[1], "v1")
	held := s.hold("get", redistest.Hold)
	sent := ask(t, s.Link, k[0])
	receive(t, held.Hit())
	other, same := ask(t, s.Link, k[1]), ask(t, s.Link, k[1])
	sent.giveUp()
	other.giveUp()
	held.Release()
	same.expect("v1")
	ask(t, s.Link, k[0]).expect("v0")
}

func TestMoreKeysThanAParcelHoldsAreReadInSeveral(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keysOf(t, s.Link, 1+maxReads+maxReads+7)
	for _, key := range k {
		s.set(key, "value of "+key)
	}
	held := s.hold("get", redistest.Hold)
	first := ask(t, s.Link, k[0])
	receive(t, held.Hit())
	rest := k[1:]
	var all []asking
	for _, key := range rest {
		all = append(all, ask(t, s.Link, key))
	}
	held.Release()
	first.expect("value of " + k[0])
	for i, a := range all {
		a.expect("value of " + rest[i])
	}
	s.sent.expect(t, k[:1], rest[:maxReads], rest[maxReads:2*maxReads], rest[2*maxReads:])
}

func TestKeyThatHoldsNoStringIsThereWithNoContent(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keysOf(t, s.Link, 2)
	expect.Must(t, s.rdb.HSet(t.Context(), k[0], "f", "v").Err())
	s.set(k[1], "")
	for _, key := range k {
		if read, err := s.Get(t.Context(), key); err != nil || read.Err != nil || read.Raw == nil || len(read.Raw) != 0 {
			t.Errorf("%s: read %#v, %v; want no bytes, and not nil", key, read, err)
		}
	}
}

func TestSharedReadIsMadeOnceForAll(t *testing.T) {
	t.Parallel()
	var share Share
	var made atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			first := share.Make(func() any { made.Add(1); return strconv.Itoa(i) })
			if again := share.Make(func() any { made.Add(1); return "again" }); again != first {
				t.Errorf("Make = %v, then %v", first, again)
			}
		})
	}
	all.Wait()
	expect.Equal(t, "times made", made.Load(), 1)
}

func TestOneMoreParcelOfReadsIsUnderWayThanTheRoundTripAsksFor(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.reads[0].spare = spareReads
	k := keysOf(t, s.Link, 4)
	held := s.proxy.On(redistest.Command("get"), redistest.Hold)
	var all []asking
	for parcels := range 2 {
		all = append(all, ask(t, s.Link, k[parcels]))
		redistest.Await(t, "it is sent", func() bool { return held.Count() == parcels+1 })
	}
	all = append(all, ask(t, s.Link, k[2]), ask(t, s.Link, k[3]))
	held.Remove()
	held.Release()
	for _, a := range all {
		a.expect("")
	}
	s.sent.expect(t, k[:1], k[1:2], k[2:])
}
