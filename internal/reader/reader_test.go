package reader

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redistest"
)

func TestLoneCallGoesOutAsOnePlainGet(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	key := keys(t, s.Reader, 1)[0]
	s.set(t, key, "v")
	ask(t, s.Reader, key).expect("v")
	ask(t, s.Reader, key).expect("v")
	s.sent.expect(t, []string{key}, []string{key})
	if s.sent.piped[0] {
		t.Error("in a pipeline")
	}
	if n := s.proxy.Commands()["get"]; n != 2 {
		t.Errorf("%d GETs, want 2", n)
	}
}

func TestCallsThatArriveDuringABatchShareTheNextOne(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keys(t, s.Reader, 3)
	for _, key := range k {
		s.set(t, key, "value of "+key)
	}
	held := s.hold(redistest.Hold)
	first := ask(t, s.Reader, k[0])
	receive(t, held.Hit())
	var later []*asking
	for _, i := range []int{1, 2, 0, 2, 1, 1} {
		later = append(later, ask(t, s.Reader, k[i]))
	}
	held.Release()
	first.expect("value of " + k[0])
	for n, i := range []int{1, 2, 0, 2, 1, 1} {
		later[n].expect("value of " + k[i])
	}
	s.sent.expect(t, []string{k[0]}, []string{k[1], k[2], k[0]})
}

func TestKeyIsReadOncePerBatchHoweverManyAsk(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	key := keys(t, s.Reader, 1)[0]
	s.set(t, key, "v")
	held := s.hold(redistest.Hold)
	first := ask(t, s.Reader, key)
	receive(t, held.Hit())
	var later []*asking
	for range 50 {
		later = append(later, ask(t, s.Reader, key))
	}
	held.Release()
	for _, a := range later {
		if a.answer() != later[0].answer() {
			t.Error("two reads for callers of one batch")
		}
	}
	if first.answer() == later[0].answer() {
		t.Error("a caller shares a read that had been sent when it asked")
	}
	s.sent.expect(t, []string{key}, []string{key})
}

func TestCallNeverReceivesAValueReadBeforeItAsked(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	key := keys(t, s.Reader, 1)[0]
	s.set(t, key, "old")
	held := s.hold(redistest.HoldReply)
	first := ask(t, s.Reader, key)
	receive(t, held.Hit()) // Redis has read "old"
	s.set(t, key, "new")
	second := ask(t, s.Reader, key)
	held.Release()
	first.expect("old")
	second.expect("new")
}

func TestAbsenceAnswersThoseWhoWaitForTheirOwnRead(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keys(t, s.Reader, 3)
	s.set(t, k[1], "v1")
	s.set(t, k[2], "v2")
	held := s.hold(redistest.HoldReply)
	first := ask(t, s.Reader, k[0])
	receive(t, held.Hit())
	before, same, after := ask(t, s.Reader, k[1]), ask(t, s.Reader, k[0]), ask(t, s.Reader, k[2])
	held.Release()
	first.expectAbsence()
	same.expectAbsence()
	before.expect("v1")
	after.expect("v2")
	s.sent.expect(t, []string{k[0]}, []string{k[1], k[2]})
}

func TestLaneIsIdleAfterAbsenceHasAnsweredAllWhoWaited(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	key := keys(t, s.Reader, 1)[0]
	held := s.hold(redistest.HoldReply)
	first := ask(t, s.Reader, key)
	receive(t, held.Hit())
	second := ask(t, s.Reader, key)
	held.Release()
	first.expectAbsence()
	second.expectAbsence()
	s.set(t, key, "v")
	ask(t, s.Reader, key).expect("v")
	s.sent.expect(t, []string{key}, []string{key})
}

// Otherwise a caller that acts on the absence and asks again could be answered by it once more.
func TestAbsenceHasAnsweredAllWhoWaitBeforeTheFirstIsTold(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	key := keys(t, s.Reader, 1)[0]
	lane := s.lane(key)
	for range 100 {
		held := s.hold(redistest.HoldReply)
		first, _ := lane.join(t.Context(), key) // not closed
		receive(t, held.Hit())
		pending, _ := lane.join(t.Context(), key)
		held.Release()
		receive(t, first.done)
		select {
		case <-pending.done:
		default:
			t.Fatal("the next read of the key still waits")
		}
	}
}

func TestContextLetsGoOnlyItsOwnCaller(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keys(t, s.Reader, 2)
	s.set(t, k[0], "v0")
	s.set(t, k[1], "v1")
	held := s.hold(redistest.Hold)
	sent := ask(t, s.Reader, k[0])
	receive(t, held.Hit())
	other := ask(t, s.Reader, k[1])
	same := ask(t, s.Reader, k[1])
	for _, a := range []*asking{sent, other} {
		a.leave()
		receive(t, a.done)
		if !errors.Is(a.err, context.Canceled) || a.read != nil {
			t.Errorf("Get = %v, %v; want the context's error", a.read, a.err)
		}
	}
	held.Release()
	same.expect("v1")
	ask(t, s.Reader, k[0]).expect("v0")
}

func TestMoreKeysThanABatchHoldsAreReadInSeveral(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keys(t, s.Reader, 1+maxBatch+maxBatch+7)
	for _, key := range k {
		s.set(t, key, "value of "+key)
	}
	held := s.hold(redistest.Hold)
	first := ask(t, s.Reader, k[0])
	receive(t, held.Hit())
	rest := k[1:]
	var all []*asking
	for _, key := range rest {
		all = append(all, ask(t, s.Reader, key))
	}
	held.Release()
	first.expect("value of " + k[0])
	for i, a := range all {
		a.expect("value of " + rest[i])
	}
	s.sent.expect(t, k[:1], rest[:maxBatch], rest[maxBatch:2*maxBatch], rest[2*maxBatch:])
}

func TestKeyThatHoldsNoStringIsThereWithNoContent(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keys(t, s.Reader, 2)
	if err := s.rdb.HSet(t.Context(), k[0], "f", "v").Err(); err != nil {
		t.Fatal(err)
	}
	s.set(t, k[1], "")
	for _, key := range k {
		if read := ask(t, s.Reader, key).answer(); read.Err != nil || read.Raw == nil || len(read.Raw) != 0 {
			t.Errorf("%s: read %#v, %v; want no bytes, and not nil", key, read.Raw, read.Err)
		}
	}
}

func TestErrorOfOneKeyOfAPipelineIsNotAnErrorOfTheOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.mget.Store(false)
	k := keys(t, s.Reader, 3)
	s.set(t, k[2], "v")
	held := s.hold(redistest.Hold)
	first := ask(t, s.Reader, k[0])
	receive(t, held.Hit())
	s.proxy.On(func(args []string) bool { return args[0] == "get" && args[1] == k[1] }, redistest.ReplyError("ERR sorry"))
	bad, good := ask(t, s.Reader, k[1]), ask(t, s.Reader, k[2])
	held.Release()
	first.expectAbsence()
	good.expect("v")
	if read := bad.answer(); !redis.HasErrorPrefix(read.Err, "sorry") || read.Raw != nil {
		t.Errorf("read %q, %v; want Redis' error", read.Raw, read.Err)
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
	if n := made.Load(); n != 1 {
		t.Errorf("made %d times, want once", n)
	}
}

// What looks like one server may refuse MGET: a proxy before a cluster, or one with rules about commands.
func TestServerThatRefusesMGETIsAskedByPipeline(t *testing.T) {
	t.Parallel()
	for _, refusal := range []string{"CROSSSLOT Keys in request don't hash to the same slot", "NOPERM no", "ERR unknown command 'mget'"} {
		s := newStage(t, patient)
		k := keys(t, s.Reader, 3)
		s.set(t, k[1], "v1")
		refused := s.proxy.On(redistest.Command("mget"), redistest.ReplyError(refusal))
		for range 2 {
			held := s.hold(redistest.Hold)
			first := ask(t, s.Reader, k[0])
			receive(t, held.Hit())
			second, third := ask(t, s.Reader, k[1]), ask(t, s.Reader, k[2])
			held.Release()
			first.expectAbsence()
			second.expect("v1")
			third.expectAbsence()
		}
		if n := refused.Count(); n != 1 {
			t.Errorf("%s: MGET was tried %d times", refusal, n)
		}
	}
}

func TestErrorOfMGETIsThatOfAllItsKeys(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keys(t, s.Reader, 3)
	s.proxy.On(redistest.Command("mget"), redistest.ReplyError("LOADING not yet"))
	held := s.hold(redistest.Hold)
	first := ask(t, s.Reader, k[0])
	receive(t, held.Hit())
	second, third := ask(t, s.Reader, k[1]), ask(t, s.Reader, k[2])
	held.Release()
	first.expectAbsence()
	for _, a := range []*asking{second, third} {
		if read := a.answer(); !redis.HasErrorPrefix(read.Err, "LOADING") {
			t.Errorf("read %q, %v", read.Raw, read.Err)
		}
	}
}
