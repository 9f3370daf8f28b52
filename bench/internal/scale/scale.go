// Package scale compares cacheguard with a model of itself: what a load costs when thousands wait for it, beside what one of each thing
// costs. The model and the results are in bench/SCALE.md.
package scale

import (
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// All are the scenarios. They measure on the loopback interface.
func All() []scenario.Scenario {
	all := []scenario.Scenario{unitCosts(), manyGuards(), manyCallers(), manyKeys(), idleGuards()}
	for _, s := range all {
		for i := range s.Cases {
			s.Cases[i].Away = []time.Duration{0}
		}
	}
	return all
}
