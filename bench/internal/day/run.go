package day

import (
	"math"
	"slices"
)

// Second is what happens in a second.
type Second struct {
	Gets     float64
	Loads    float64 // what the database is asked
	AtOnce   float64 // the most of them at a moment
	Requests float64 // what Redis is asked, all nodes together
	Mean     float64 // the share of its time that a node computes
	Busiest  float64 // the same of the busiest node
	Waits    float64 // for how many seconds a load waits for a permit of the Limiter
	GaveUp   float64 // loads for which nobody waits any more
}

// Cacheguard computes the plan for a fleet that uses cacheguard.
func Cacheguard(p Plan, prices Prices) []Second {
	return (&fleet{Plan: p, prices: prices.in(p)}).run()
}

// ByHand computes it for a fleet that uses GET, SET and DEL.
func ByHand(p Plan, prices Prices) []Second {
	return (&fleet{Plan: p, prices: prices.in(p), byHand: true}).run()
}

type fleet struct {
	Plan

	prices   each
	byHand   bool
	kinds    [][]*class
	bypassed float64 // loads that wait for permits, of keys that no node answers for
	burst    float64 // loads that begin while the first one runs, after many keys were lost in one moment
}

func (f *fleet) run() []Second {
	for _, k := range f.Kinds {
		f.kinds = append(f.kinds, k.classes(int(f.TTL.Seconds())))
	}
	f.warm()
	day := make([]Second, f.Seconds)
	for s := range day {
		day[s] = f.second(s)
	}
	return day
}

// warm begins the day as if it had been like its first second for long.
func (f *fleet) warm() {
	longest := int(f.TTL.Seconds())
	for i, classes := range f.kinds {
		for _, c := range classes {
			gets := f.Kinds[i].Gets(0) * c.share
			c.store(c.keys*gets*f.TTL.Seconds()/(1+gets*f.TTL.Seconds()), 0, 1, longest)
		}
	}
}

func (f *fleet) second(s int) Second {
	out := Second{}
	silent := f.silent(s)
	f.burst = 0
	wanted := make([][]float64, len(f.kinds))
	all := f.bypassed
	for i, classes := range f.kinds {
		gets, writes := f.Kinds[i].Gets(s), f.Kinds[i].Writes(s)
		out.Gets += gets
		for _, c := range classes {
			f.forget(i, c, s, gets, writes)
			want := c.waiting + (1-silent)*max(0, c.keys-c.cached-c.waiting)*(1-math.Exp(-gets*c.share))
			wanted[i] = append(wanted[i], want)
			all += want
		}
		f.bypassed += silent * gets
		all += silent * gets
		out.add(f.prices.get, (1-silent)*gets)
		out.add(f.prices.invalidate(f.byHand), writes)
	}
	may := 1.0 // the share of loads that have a permit
	if capacity := f.Fleet / f.Load.Seconds(); f.Fleet > 0 && !f.byHand && all > capacity {
		may = capacity / all
		out.Waits = all/capacity - 1
	}
	f.load(&out, s, wanted, may)
	f.giveUp(&out)
	f.nodes(&out, s)
	return out
}

// silent is the share of the keys that no node answers for. If breakers are open, that is their whole part of the keyspace.
func (f *fleet) silent(s int) float64 {
	switch {
	case !f.isSilent(s):
		return 0
	case f.byHand || f.Parts == 0:
		return 1 / float64(f.Nodes)
	}
	return max(1/float64(f.Parts), 1/float64(f.Nodes))
}

// forget is what expires, is invalidated, or is lost with its node.
func (f *fleet) forget(kind int, c *class, s int, gets, writes float64) {
	c.expire(s)
	c.lose(1 - math.Exp(-writes*c.share))
	share := 0.0
	if slices.Contains(f.Lost, s) {
		share = 1 / float64(f.Nodes)
	}
	if slices.Contains(f.Kinds[kind].Cleared, s) {
		share = 1
	}
	if share > 0 {
		if meanwhile := gets * c.share * f.Load.Seconds(); f.byHand {
			f.burst += c.cached * share * meanwhile
		} else {
			f.burst += c.cached * share * (1 - math.Exp(-meanwhile))
		}
		c.lose(share)
	}
}

// load loads what is wanted and has a permit. By hand, everybody loads who comes while a load is under way.
func (f *fleet) load(out *Second, s int, wanted [][]float64, may float64) {
	longest, n := int(f.TTL.Seconds()), float64(f.Instances)
	shortest := longest - int(f.Jitter*float64(longest))
	for i, classes := range f.kinds {
		for j, c := range classes {
			begun := wanted[i][j] * may
			c.waiting = wanted[i][j] - begun
			c.store(begun, s, shortest, longest)
			others := f.Kinds[i].Gets(s) * c.share * (f.Load.Seconds() + out.Waits) // who come meanwhile, for each key
			if f.byHand {
				out.Loads += begun * (1 + others)
				out.add(f.prices.get, begun*(1+others)) // SET
				continue
			}
			out.Loads += begun
			out.add(f.prices.miss, 2*begun)            // acquire and fill
			waiting := n * (1 - math.Exp(-others/n))   // instances
			out.Requests -= begun * (others - waiting) // they share what the first of their instance has read
			out.Mean -= f.prices.get * begun * (others - waiting)
			out.add(f.prices.wait, begun*waiting)
		}
	}
	direct := f.bypassed * may
	f.bypassed -= direct
	out.Loads += direct
	out.AtOnce = max(out.Loads*f.Load.Seconds(), f.burst)
	if f.Fleet > 0 && !f.byHand {
		out.AtOnce = min(out.AtOnce, f.Fleet)
	}
}

// giveUp is those who have waited for too long, and the loads that nobody waits for any more.
func (f *fleet) giveUp(out *Second) {
	if patience := f.Patience.Seconds(); f.Patience > 0 && out.Waits > patience {
		share := 1 - patience/out.Waits
		out.GaveUp += f.bypassed * share
		f.bypassed *= 1 - share
		for _, classes := range f.kinds {
			for _, c := range classes {
				out.GaveUp += c.waiting * share
				c.waiting *= 1 - share
			}
		}
	}
}

// nodes turns the processor time of all nodes into shares. The busiest has the most popular key, or the permits of the Limiter.
func (f *fleet) nodes(out *Second, s int) {
	hottest := 0.0
	for i, classes := range f.kinds {
		hottest = max(hottest, f.Kinds[i].Gets(s)*classes[0].share*f.prices.get)
	}
	permits := 0.0
	if f.Fleet > 0 && !f.byHand {
		permits = out.Loads * 2 * f.prices.permit
		out.Requests += 2 * out.Loads
	}
	n := float64(f.Nodes)
	out.Mean += f.prices.idle * n // until here, it is the time of all nodes
	out.Busiest = out.Mean/n + max(hottest*(1-1/n), permits)
	out.Mean = (out.Mean + permits) / n
}

// add counts requests, each of which takes the server so many seconds.
func (out *Second) add(price, requests float64) {
	out.Requests += requests
	out.Mean += price * requests
}
