package send

import (
	"context"
	"slices"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

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
