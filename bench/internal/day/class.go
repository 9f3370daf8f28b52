// Package day computes a day of a large fleet, second by second: what its database and its Redis see while deployments, failovers and a sale go on.
// Nothing runs, and nothing is drawn: the keys of a kind are in classes of about the same popularity, and a class knows how many of its keys are
// cached, when these expire, and how many wait for a load. So a day of a billion Gets takes seconds.
//
// The prices of single operations are measured (bench/results/scale). TestTheModelAgreesWithGuards runs Guards through a small day, on a simulated clock, and
// compares their loads and requests with the computed ones.
package day

import "math"

// class is keys of a kind that are about equally popular.
type class struct {
	keys, share float64 // how many, and what share of the kind's Gets each of them has
	cached      float64
	waiting     float64 // not cached, and somebody waits for a load that has no permit

	// When what is cached expires: expiring[second] is by how much the number that expires in a second grows there. All were divided by
	// left when they were stored, the share of what was cached in the beginning that nobody has invalidated since.
	expiring []float64
	now      float64 // how many expire in this second, divided by left
	left     float64
}

// classes cuts the keys at ranks that are a tenth apart.
func (k Kind) classes(ttl int) (all []*class) {
	weight := func(from, to int) float64 { // of the ranks in between, from 1 on
		sum := 0.0
		for rank := from; rank < min(to, from+100); rank++ {
			sum += math.Pow(float64(rank), -k.Zipf)
		}
		if to > from+100 {
			power := 1 - k.Zipf
			sum += (math.Pow(float64(to)-0.5, power) - math.Pow(float64(from+100)-0.5, power)) / power
		}
		return sum
	}
	total := weight(1, k.Keys+1)
	for from := 1; from <= k.Keys; {
		to := min(max(from+1, from+from/5), k.Keys+1)
		n := float64(to - from)
		all = append(all, &class{keys: n, share: weight(from, to) / total / n, expiring: make([]float64, ttl+2), left: 1})
		from = to
	}
	return all
}

// expire is the beginning of a second.
func (c *class) expire(second int) {
	slot := &c.expiring[second%len(c.expiring)]
	c.now += *slot
	*slot = 0
	c.cached = max(0, c.cached-c.now*c.left)
}

// store caches keys, whose TTLs are between the shortest and the longest.
func (c *class) store(n float64, second, shortest, longest int) {
	c.cached += n
	each := n / c.left / float64(longest-shortest+1)
	c.expiring[(second+shortest)%len(c.expiring)] += each
	c.expiring[(second+longest+1)%len(c.expiring)] -= each
}

// lose forgets a share of what is cached.
func (c *class) lose(share float64) {
	if share >= 1 || c.left < 1e-100 { // then the numbers would soon be too small: what is left of them is all there is
		for i := range c.expiring {
			c.expiring[i] *= c.left * (1 - share)
		}
		c.now *= c.left * (1 - share)
		c.left = 1
	} else {
		c.left *= 1 - share
	}
	c.cached *= 1 - share
}
