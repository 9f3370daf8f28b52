package redistest

import (
	"context"
	"strings"
	"sync"
	"testing"
)

// page is what was written to it.
type page struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *page) has(part string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.text.String(), part)
}

func TestTraceHasCommandsAndThoseInsideScripts(t *testing.T) {
	t.Setenv(traceVariable, "1")
	s := Start(t)
	var printed page
	tr, err := startTrace(s.Addr(), &printed)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	rdb := s.Client(t)
	if err := rdb.Eval(context.Background(), "return redis.call('INCR', KEYS[1])", []string{"traced"}).Err(); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"eval"`, `lua] "INCR" "traced"`} {
		Await(t, "the trace has "+part, func() bool { return printed.has(part) })
	}
}

func TestNothingIsTracedUnlessAskedFor(t *testing.T) {
	t.Setenv(traceVariable, "")
	if tr, err := startTrace("nowhere", nil); tr != nil || err != nil {
		t.Errorf("%v, %v", tr, err)
	}
}
