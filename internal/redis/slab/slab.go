// Package slab makes many small things in a few pieces of memory, where they are needed at about the same time.
package slab

// most is how many things share a piece: as long as one of them is in use, all of it is.
const most = 32

// Slab has room for things that are made one after the other. The zero Slab, and a nil one, make each by itself.
type Slab[T any] struct {
	Left int // things that may still be wanted
	free []T
}

// New returns room for one thing, which is zero.
func (s *Slab[T]) New() *T {
	if s == nil || s.Left <= 1 && len(s.free) == 0 {
		return new(T)
	}
	if len(s.free) == 0 {
		s.free = make([]T, min(s.Left, most))
		s.Left -= len(s.free)
	}
	one := &s.free[0]
	s.free = s.free[1:]
	return one
}
