package send

import "testing"

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
