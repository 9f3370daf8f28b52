// Package count has numbers that a part names once: its name, what it means and its value. Whoever shows numbers reads
// the list.
package count

import (
	"sync"
	"sync/atomic"
)

// Number is one at a time. The Name of one that only grows ends with _total.
type Number struct {
	Name, Help string
	Value      float64
}

// List has numbers, in the order in which they were added. The zero List is ready.
type List struct {
	mu  sync.Mutex
	all []named
}

type named struct {
	name, help string
	value      func() float64
}

// Add adds a number that is asked for.
func (l *List) Add(name, help string, value func() float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, named{name, help, value})
}

// Total adds a number that only grows, and returns what counts it.
func (l *List) Total(name, help string) *atomic.Uint64 {
	n := new(atomic.Uint64)
	l.Add(name, help, func() float64 { return float64(n.Load()) })
	return n
}

// Read reads all of them.
func (l *List) Read() []Number {
	l.mu.Lock()
	all := l.all // which only grows
	l.mu.Unlock()
	read := make([]Number, len(all))
	for i, n := range all {
		read[i] = Number{n.name, n.help, n.value()}
	}
	return read
}
