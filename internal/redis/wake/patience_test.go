package wake

import (
	"math"
	"testing"
	"time"
)

// What others wrote to Redis may say that a lease ends at any time. Whoever waits for it must not ask without a pause.
func TestALeaseThatEndedLongAgoIsAskedForAfterAPause(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
		waited := time.Duration(0)
		for range 1000 {
			waited += Patience(left, true, 0)
		}
		if waited < 1000*expiryJitter/4 {
			t.Errorf("%v left: asked 1000 times within %v", left, waited)
		}
	}
}
