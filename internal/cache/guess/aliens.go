package guess

import (
	"sync"
	"time"
)

// FirstYield is how old an entry has to be at first.
const FirstYield = time.Minute

const maxYield = time.Hour

// Aliens decides what to do with an entry of a Cache that is intact but that this program cannot decode: another
// version of the program, which may be running, stored it. If each version replaced the other's entries, both would
// keep loading the key, in turns. So a young entry stays, and the program loads without storing. Only an old entry,
// which may be left over from a version that is gone, is replaced. If the other version then stores again, and so is
// still running, the next entry must be twice as old, up to an hour.
type Aliens struct {
	mu       sync.Mutex
	yield    time.Duration // how old an entry has to be; 0: FirstYield
	replaced time.Time     // when this program first did so since yield was set; zero: not yet
}

// MayReplace reports whether an entry of that age may be replaced.
func (a *Aliens) MayReplace(age time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case a.yield == 0:
		a.yield = FirstYield
	case !a.replaced.IsZero() && now.Add(-age).After(a.replaced):
		a.yield, a.replaced = min(2*a.yield, maxYield), time.Time{}
	}
	if age < a.yield {
		return false
	}
	if a.replaced.IsZero() {
		a.replaced = now
	}
	return true
}
