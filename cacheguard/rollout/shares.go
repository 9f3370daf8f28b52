package rollout

import (
	"context"
	"errors"
	"hash/fnv"
	"strings"
	"sync"
)

// ErrNotYet is the error of Gate for a key that is not rolled out.
var ErrNotYet = errors.New("rollout: not rolled out yet")

// Shares says for which keys the cache is used: a percentage of each kind, the Name of a Cache. A kind that is not
// named is off, and so is the zero Shares. It is of one process: give each the same numbers, from whatever configures
// them at run time. It is safe for concurrent use.
type Shares struct {
	mu      sync.RWMutex
	percent map[string]float64 // by kind
	off     bool
}

// Set sets the percentages by kind, in place of those before. Less than 0 counts as 0. The kind "" is for all others.
func (s *Shares) Set(percent map[string]float64) {
	all := make(map[string]float64, len(percent))
	for kind, p := range percent {
		all[kind] = p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.percent = all
}

// Off refuses all keys in this process, whatever is set, until it is called with false. Guard.BypassFleet does so for
// all processes, and ends by itself.
func (s *Shares) Off(off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = off
}

// Gate is for Config.Gate. The error is ErrNotYet. A share that grows has all keys that it had, in every process.
func (s *Shares) Gate(ctx context.Context, key string) error {
	if ctx.Value(comparing{}) != nil {
		return nil
	}
	kind, _, _ := strings.Cut(key, ":")
	s.mu.RLock()
	off, share := s.off, s.percent[kind]
	if _, named := s.percent[kind]; !named {
		share = s.percent[""]
	}
	s.mu.RUnlock()
	if off || float64(place(key)) >= share*100 {
		return ErrNotYet
	}
	return nil
}

// place is where the key is among ten thousand.
func place(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // it never fails
	sum := h.Sum32()
	sum ^= sum >> 16 // the last letters move its low bits most
	return sum * 0x85ebca6b >> 8 % 10_000
}
