package slab

import "testing"

func TestThingsOfASlabAreDistinctAndNoMoreAreMadeThanWanted(t *testing.T) {
	t.Parallel()
	s := &Slab[int]{Left: 2*most + 1}
	seen := map[*int]bool{}
	for i := range 2*most + 3 { // two more than were announced
		one := s.New()
		if seen[one] || *one != 0 {
			t.Fatalf("thing %d is not new", i)
		}
		seen[one], *one = true, 1
		if i == 0 && len(s.free) != most-1 || i >= 2*most && len(s.free) != 0 {
			t.Errorf("room for %d more after thing %d", len(s.free), i)
		}
	}
	if (*Slab[int])(nil).New() == nil {
		t.Error("a nil Slab makes nothing")
	}
}
