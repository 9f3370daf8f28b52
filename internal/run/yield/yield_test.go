package yield

import "testing"

func TestItWaitsWhileTheCountGrowsAndNoLonger(t *testing.T) {
	t.Parallel()
	asked := uint64(0)
	WhileGrowing(func() uint64 {
		asked++
		return 7
	})
	if asked != 2 {
		t.Errorf("a count that stays the same was looked at %d times", asked)
	}
	asked = 0
	WhileGrowing(func() uint64 {
		asked++
		return asked
	})
	if asked < 2 || asked > maxYields+1 {
		t.Errorf("a count that always grows was looked at %d times", asked)
	}
}
