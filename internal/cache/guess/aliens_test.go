package guess

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestAVersionThatStoresAgainIsLeftAloneForLonger(t *testing.T) {
	t.Parallel()
	var a Aliens
	expect.Equal(t, "young", a.MayReplace(FirstYield-time.Second), false)
	expect.Equal(t, "old", a.MayReplace(FirstYield+time.Second), true)
	expect.Equal(t, "another old one", a.MayReplace(FirstYield+time.Second), true)
	a.replaced = time.Now().Add(-time.Hour)
	expect.Equal(t, "written since", a.MayReplace(FirstYield+time.Second), false)
	expect.Equal(t, "twice as old", a.MayReplace(2*FirstYield+time.Second), true)
	for range 20 {
		a.replaced = time.Now().Add(-2 * maxYield)
		_ = a.MayReplace(0)
	}
	expect.Equal(t, "the longest", a.MayReplace(maxYield+time.Second), true)
}
