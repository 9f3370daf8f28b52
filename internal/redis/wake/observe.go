package wake

import (
	"maps"
	"slices"
)

// observer hears whether the subscription stands, and why not, as far as that is known.
type observer func(live bool, why error)

// OnLive calls f when the subscription stands, at once if it does; when it does not any more; and from then on, or from
// Start on, whenever it could not be had, with the reason. Calls do not overlap. They are made by the goroutines of the
// subscription: f must be quick. f may be called once more while stop runs.
func (in *Inbox) OnLive(f func(live bool, why error)) (stop func()) {
	o := observer(func(live bool, why error) {
		if live || in.started.Load() { // others of the client may need messages, and this inbox none yet
			f(live, why)
		}
	})
	in.telling.Lock()
	defer in.telling.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.observers == nil {
		in.observers = make(map[*observer]struct{})
	}
	in.observers[&o] = struct{}{}
	if in.told {
		f(true, nil)
	}
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.observers, &o)
	}
}

// tell tells observers of a change, outside of the mutex. It looks again after that: a late caller must not have the
// last word.
func (in *hub) tell(why error) {
	in.telling.Lock()
	defer in.telling.Unlock()
	for in.live.Load() != in.told {
		in.told = !in.told
		in.tellLocked(why)
	}
}

// failed tells observers why the subscription could not be had.
func (in *hub) failed(why error) {
	in.telling.Lock()
	defer in.telling.Unlock()
	if !in.told {
		in.tellLocked(why)
	}
}

func (in *hub) tellLocked(why error) {
	in.mu.Lock()
	observers := slices.Collect(maps.Keys(in.observers))
	in.mu.Unlock()
	for _, f := range observers {
		(*f)(in.told, why)
	}
}
