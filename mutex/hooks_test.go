package mutex

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// heard is what the hooks reported.
type heard struct {
	mu     sync.Mutex
	asked  map[string][]error
	unlock map[string][]error
}

func (h *heard) hooks() Hooks {
	h.asked, h.unlock = make(map[string][]error), make(map[string][]error)
	return Hooks{
		OnLock: func(name string, _ time.Duration, err error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.asked[name] = append(h.asked[name], err)
		},
		OnUnlock: func(name string, _ time.Duration, err error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.unlock[name] = append(h.unlock[name], err)
		},
	}
}

func TestHooksGetLocksAndUnlocks(t *testing.T) {
	t.Parallel()
	var h heard
	cfg := Config{Prefix: "hooks-" + t.Name(), Hooks: h.hooks()}
	k, err := New(shared.Client(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // always nil
	l, err := k.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.TryLock(t.Context(), "a"); !errors.Is(err, ErrNotAcquired) {
		t.Error(err)
	}
	_ = l.Unlock(t.Context())
	_ = l.Unlock(t.Context())
	h.mu.Lock()
	defer h.mu.Unlock()
	if asked := h.asked["a"]; len(asked) != 2 || asked[0] != nil || !errors.Is(asked[1], ErrNotAcquired) {
		t.Errorf("asked: %v", asked)
	}
	if unlocked := h.unlock["a"]; len(unlocked) != 1 || unlocked[0] != nil {
		t.Errorf("unlocked: %v", unlocked)
	}
}
