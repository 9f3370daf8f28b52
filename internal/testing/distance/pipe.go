package distance

import (
	"net"
	"sync"
	"time"
)

// Road leads to a server in the same process, for a bubble of testing/synctest.
type Road struct {
	RoundTrip time.Duration
	carrying  sync.WaitGroup
}

// Connect returns a connection whose other end is far. It takes what is sent before the server reads it, as TCP does and a pipe in memory does
// not: a client that writes a long pipeline, and a server that has begun to answer, would wait for each other. It ends with either end.
func (r *Road) Connect(far net.Conn) net.Conn {
	client, near := net.Pipe()
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		under := make(chan chunk, 10_000)
		r.carrying.Go(func() { // owner: Road; it ends with either end; joined by Wait
			defer close(under)
			for {
				buffer := make([]byte, 4<<10)
				n, err := way[0].Read(buffer)
				if err != nil {
					return
				}
				under <- chunk{buffer[:n], time.Now().Add(r.RoundTrip / 2)}
			}
		})
		r.carrying.Go(func() { // as above
			for some := range under {
				time.Sleep(time.Until(some.due))
				if _, err := way[1].Write(some.data); err != nil {
					break
				}
			}
			_, _ = near.Close(), far.Close() // always nil
			for range under {                // nobody reads it
			}
		})
	}
	return client
}

// Wait returns when all connections have ended.
func (r *Road) Wait() { r.carrying.Wait() }
