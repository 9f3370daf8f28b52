package send

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// readTogether reads three keys, the last two in one parcel.
func (s *stage) readTogether(k []string) (first, second, third asking) {
	s.t.Helper()
	held := s.hold("get", redistest.Hold)
	first = ask(s.t, s.Link, k[0])
	receive(s.t, held.Hit())
	second, third = ask(s.t, s.Link, k[1]), ask(s.t, s.Link, k[2])
	held.Release()
	return first, second, third
}

func TestOneServerIsAskedByMGET(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keysOf(t, s.Link, 3)
	s.set(k[1], "v1")
	first, second, third := s.readTogether(k)
	first.expectAbsence()
	second.expect("v1")
	third.expectAbsence()
	if n := s.proxy.Commands(); n["mget"] != 1 || n["get"] != 1 {
		t.Errorf("%d MGETs and %d GETs, want one of each", n["mget"], n["get"])
	}
}

func TestErrorOfOneKeyOfAPipelineIsNotAnErrorOfTheOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.mget.Store(false)
	k := keysOf(t, s.Link, 3)
	s.set(k[2], "v")
	s.proxy.On(func(args []string) bool { return args[0] == "get" && args[1] == k[1] }, redistest.ReplyError("ERR sorry"))
	first, bad, good := s.readTogether(k)
	first.expectAbsence()
	good.expect("v")
	if read := bad.answer(); !redis.HasErrorPrefix(read.Err, "sorry") || read.Raw != nil {
		t.Errorf("read %q, %v; want Redis' error", read.Raw, read.Err)
	}
}

// Something that looks like one server may refuse MGET: a proxy before a cluster, or one with rules about commands. The code must also bear
// a reply that is too short.
func TestServerThatRefusesMGETIsAskedByPipeline(t *testing.T) {
	t.Parallel()
	for _, refusal := range []redistest.Fault{
		redistest.ReplyError("CROSSSLOT Keys in request don't hash to the same slot"),
		redistest.ReplyError("NOPERM no"),
		redistest.ReplyError("ERR unknown command 'mget'"),
		"*1\r\n$-1",
	} {
		s := newStage(t, patient)
		k := keysOf(t, s.Link, 3)
		s.set(k[1], "v1")
		refused := s.proxy.On(redistest.Command("mget"), refusal)
		for range 2 {
			first, second, third := s.readTogether(k)
			first.expectAbsence()
			second.expect("v1")
			third.expectAbsence()
		}
		expect.Equal(t, "times that MGET was tried, "+string(refusal), refused.Count(), 1)
	}
}

func TestAllKeysOfAnMGETHaveItsError(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.proxy.On(redistest.Command("mget"), redistest.ReplyError("LOADING not yet"))
	first, second, third := s.readTogether(keysOf(t, s.Link, 3))
	first.expectAbsence()
	for _, a := range []asking{second, third} {
		if read := a.answer(); !redis.HasErrorPrefix(read.Err, "LOADING") {
			t.Errorf("read %q, %v", read.Raw, read.Err)
		}
	}
}

// all asks for keys at once, each with the same one beside it, and returns the values.
func (s *stage) all(ctx context.Context, keys []string, beside string) (values []string) {
	s.t.Helper()
	questions := make([]Question, len(keys))
	for i, key := range keys {
		questions[i] = Question{Key: key, Beside: []string{beside}}
	}
	for _, read := range s.AskAll(ctx, questions) {
		if err := read.Wait(ctx); err != nil || read.Err != nil {
			s.t.Errorf("%v, %v", err, read.Err)
		}
		raw, err, asked := read.Beside(beside)
		if err != nil || !asked || string(raw) != "beside" {
			s.t.Errorf("beside it: %q, %v, asked: %v", raw, err, asked)
		}
		values = append(values, string(read.Raw))
	}
	return values
}

func TestKeysAskedForAtOnceShareTheParcelsThatWait(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keysOf(t, s.Link, maxReads+5)
	s.set(k[0], "beside")
	for _, key := range k[1:] {
		s.set(key, key)
	}
	held := s.hold("get", redistest.Hold)
	first := ask(t, s.Link, k[0])
	receive(t, held.Hit())
	waits := ask(t, s.Link, k[2])
	done := make(chan []string)
	go func() { done <- s.all(t.Context(), k[1:], k[0]) }()
	redistest.Await(t, "all are queued", func() bool {
		lane := s.reads[0]
		lane.mu.Lock()
		defer lane.mu.Unlock()
		return len(lane.queue.(*readQueue).byKey) == len(k)-1
	})
	held.Release()
	first.expect("beside")
	waits.expect(k[2])
	if got := <-done; !slices.Equal(got, k[1:]) {
		t.Errorf("values %q", got)
	}
	rest := slices.Concat(k[2:3], k[1:2], k[3:])
	s.sent.expect(t, k[:1], append(slices.Clone(rest[:maxReads]), k[0]), append(slices.Clone(rest[maxReads:]), k[0]))
}

func TestAClosedLinkReadsNoneOfManyKeys(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.Close()
	if all := s.AskAll(t.Context(), []Question{{Key: "a"}, {Key: "b"}}); len(all) != 2 || all[0] != nil || all[1] != nil {
		t.Errorf("reads %v", all)
	}
}

// Each Read would be an allocation, and a hit has few. It does not run in parallel, as it counts what the process allocates.
func TestReadsOfOneRequestShareMemory(t *testing.T) {
	s := newStage(t, patient)
	keys := keysOf(t, s.Link, 64)
	l := s.reads[0]
	l.mu.Lock()
	defer l.mu.Unlock()
	n := testing.AllocsPerRun(20, func() {
		q := &readQueue{}
		for _, key := range keys {
			q.addLocked(t.Context(), l, key, nil)
		}
	})
	if n >= float64(len(keys)) {
		t.Errorf("%v allocations for %d reads", n, len(keys))
	}
}
