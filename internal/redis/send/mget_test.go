package send

import (
	"testing"

	"github.com/redis/go-redis/v9"

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
		if n := refused.Count(); n != 1 {
			t.Errorf("%s: MGET was tried %d times", refusal, n)
		}
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
