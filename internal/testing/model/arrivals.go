package model

// slack is by how much, in ms, places may differ from arrivals, as the model's clock goes back and forth within a millisecond.
const slack = 5

// Arrivals are when those came who are queued, by their ids: that is their order, wherever they waited before they asked.
type Arrivals struct {
	world *World
	of    map[string]arrival
}

type arrival struct {
	came   int64
	leaps  int  // of the server's clock until then; -1: it leapt between the arrival and the place, which may be anywhere
	waited bool // before it asked
}

// NewArrivals returns those of a world.
func NewArrivals(w *World) *Arrivals { return &Arrivals{w, make(map[string]arrival)} }

// Waited has an id come that has waited for a while before it asks. It returns when it came, by the server's clock in µs.
func (a *Arrivals) Waited(id string) int64 {
	waited := a.world.Rand.Int64N(3000)
	a.of[id] = arrival{a.world.Mono - waited, a.world.leaps, true}
	return (a.world.Clock() - waited) * 1000
}

// Check looks at the queue, after a script. was has the queue before it.
func (a *Arrivals) Check(queue []string, was func(id string) bool) {
	for _, id := range queue {
		switch it := a.of[id]; {
		case was(id):
		case !it.waited:
			a.of[id] = arrival{came: a.world.Mono, leaps: a.world.leaps}
		case it.leaps != a.world.leaps:
			a.of[id] = arrival{leaps: -1, waited: true}
		}
	}
	for i, id := range queue {
		for _, behind := range queue[i+1:] {
			if before, known := a.before(behind, id); known && before {
				a.world.Wrong("%s is queued behind %s, and came before", behind, id)
			}
		}
	}
}

// MayPass reports whether a caller that asks may pass one that is queued: it had waited before, and nothing says that it came later.
func (a *Arrivals) MayPass(asking, queued string) bool {
	later, known := a.before(queued, asking)
	return a.of[asking].waited && !(known && later)
}

// before reports whether an id came before another, if that is known: the clock that both were placed by has not leapt in between.
func (a *Arrivals) before(id, other string) (before, known bool) {
	it, that := a.of[id], a.of[other]
	return it.came+slack < that.came, it.leaps == that.leaps && it.leaps >= 0
}
