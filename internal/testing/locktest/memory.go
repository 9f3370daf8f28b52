package locktest

import (
	"syscall"
)

// exhaust asks for memory until there is none. It does not return.
func exhaust() {
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 1, Max: 1}) // what it has, it keeps
	var all [][]byte
	for i := 0; ; i++ {
		all = append(all, make([]byte, 64<<20))
		all[i][0] = all[0][0]
	}
}

// exhaustedHolder makes the holder run out of memory: the runtime ends it at once, and nothing is cleaned up.
func exhaustedHolder(b *bench) {
	holder := b.child("lock")
	fence := b.fenceOf(holder)
	next := b.ask(patient(b), b.open())
	holder.WriteLine("exhaust")
	if holder.Wait() == nil {
		b.Fatal("it has enough memory")
	}
	l := b.granted(next)
	expectGreater(b, l.Fence(), fence)
	b.unlock(l)
	b.awaitAsking(0)
}
