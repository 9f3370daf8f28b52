// Package perclient keeps one thing per Redis client for the whole process.
//
// A process may hold many guards and lockers on one client. They share what must not be multiplied: the inbox
// subscription and the keeper of leases. Sharing needs a place that outlives each of them, so this is package state,
// the only one in the library that changes while a program runs; an entry lives only as long as somebody uses it.
package perclient

import (
	"reflect"
	"sync"
)

// Shared hands out one T per client. The zero value is ready to use.
type Shared[T any] struct {
	mu   sync.Mutex
	open map[any]*entry[T]
}

type entry[T any] struct {
	value T
	users int
}

// Open returns the T of the client, made by create for its first user. The caller calls release once when it is done
// (more calls do nothing); the last user's release passes the T to closeLast and returns when that has returned.
func (s *Shared[T]) Open(client any, create func() T, closeLast func(T)) (value T, release func()) {
	if !reflect.ValueOf(client).Comparable() {
		client = new(byte) // cannot be told apart from its copies: an entry of its own
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.open[client]
	if e == nil {
		e = &entry[T]{value: create()}
		if s.open == nil {
			s.open = make(map[any]*entry[T])
		}
		s.open[client] = e
	}
	e.users++
	return e.value, sync.OnceFunc(func() { s.release(client, e, closeLast) })
}

func (s *Shared[T]) release(client any, e *entry[T], closeLast func(T)) {
	s.mu.Lock()
	e.users--
	last := e.users == 0
	if last {
		delete(s.open, client)
	}
	s.mu.Unlock()
	if last {
		closeLast(e.value)
	}
}
