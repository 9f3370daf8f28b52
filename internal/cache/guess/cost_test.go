package guess_test

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/guess"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestCostFollowsTheLoads(t *testing.T) {
	t.Parallel()
	var c guess.Cost
	now := time.Now()
	expect.Equal(t, "worth it when nothing is known", c.Worth(now, time.Millisecond), true)
	c.Read(5 * time.Millisecond)
	c.Read(time.Hour)
	expect.Equal(t, "what an entry says", c.Average(), 5*time.Millisecond)
	for range 100 {
		c.Took(100 * time.Millisecond)
	}
	if a := c.Average(); a < 90*time.Millisecond || a > 100*time.Millisecond {
		t.Errorf("average %v", a)
	}
	expect.Equal(t, "worth less than a wait", c.Worth(now, 50*time.Millisecond), false)
	expect.Equal(t, "worth more than a wait", c.Worth(now, 200*time.Millisecond), true)
	c.Failed(now)
	expect.Equal(t, "after a failure", c.Worth(now.Add(time.Millisecond), 200*time.Millisecond), false)
	expect.Equal(t, "long after it", c.Worth(now.Add(2*time.Second), 200*time.Millisecond), true)
}
