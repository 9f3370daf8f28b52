package wake

import (
	"maps"
	"slices"
)

// OnLive calls f when the subscription stands, and when it does not any more, in that order. It is called by the goroutines of the
// subscription: f must be quick. f may be called once more while stop runs.
func (in *hub) OnLive(f func(live bool)) (stop func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.observers == nil {
		in.observers = make(map[*func(bool)]struct{})
	}
	in.observers[&f] = struct{}{}
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.observers, &f)
	}
}

// tell tells observers of a change, outside of the mutex. It looks again after that: a late caller must not have the last word.
func (in *hub) tell() {
	in.telling.Lock()
	defer in.telling.Unlock()
	for in.live.Load() != in.told {
		in.told = !in.told
		in.mu.Lock()
		observers := slices.Collect(maps.Keys(in.observers))
		in.mu.Unlock()
		for _, f := range observers {
			(*f)(in.told)
		}
	}
}
