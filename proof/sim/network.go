package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// network is what lies between an instance and Redis.
type network struct {
	redis   func(ctx context.Context, network, addr string) (net.Conn, error) // dials it
	latency time.Duration                                                     // of a message, on average
	record  *record

	mu      sync.Mutex
	random  *rand.Rand
	ended   bool      // for good
	cut     bool      // no connections
	still   time.Time // until then nothing arrives
	deaf    time.Time // until then no message of a subscription arrives
	loses   int       // so many replies are lost, with their connections
	open    map[*wire]struct{}
	running sync.WaitGroup
}

func newNetwork(w *world, random *rand.Rand) *network {
	return &network{redis: w.redis.Options().Dialer, latency: w.plan.latency, record: &w.record, random: random, open: make(map[*wire]struct{})}
}

var errCut = errors.New("sim: the network is cut")

// Dial is for redis.Options.
func (n *network) Dial(ctx context.Context, proto, addr string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut || n.ended {
		return nil, errCut
	}
	server, err := n.redis(ctx, proto, addr)
	if err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	w := &wire{net: n, near: near, server: server}
	n.open[w] = struct{}{}
	n.running.Add(2) // owner: the network; they end with their connections; joined by end
	go w.carry(near, server, false)
	go w.carry(server, near, true)
	return client, nil
}

// arrival is when a message that is sent now arrives; lost: it does not, and its connection ends.
func (n *network) arrival(earliest time.Time, isReply, isMessage bool) (at time.Time, lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var deaf time.Time
	if isMessage {
		deaf = n.deaf
	}
	takes := n.latency/2 + rand64(n.random, n.latency)
	if n.random.IntN(200) == 0 {
		takes *= 20
	}
	if isReply && n.loses > 0 {
		n.loses--
		lost = true
	}
	at = time.Now().Add(takes)
	for _, later := range []time.Time{earliest, n.still, deaf} {
		if at.Before(later) {
			at = later.Add(time.Nanosecond)
		}
	}
	return at, lost
}

func rand64(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most) + 1))
}

// setCut ends all connections, and lets nobody make one, until it is healed. Bytes on their way to Redis arrive.
func (n *network) setCut(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut = cut; cut {
		for w := range n.open {
			_ = w.near.Close() // always nil
		}
	}
}

// stand keeps everything from arriving for a while.
func (n *network) stand(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.still = time.Now().Add(d)
}

// deafen keeps what is published from arriving for a while.
func (n *network) deafen(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deaf = time.Now().Add(d)
}

// lose loses so many replies.
func (n *network) lose(replies int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loses = replies
}

// die cuts the network for good.
func (n *network) die() {
	n.setCut(true)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
}

// end waits until all connections have ended, which their clients have closed.
func (n *network) end() {
	n.die()
	n.running.Wait()
}

// wire is a connection of an instance to Redis.
type wire struct {
	net          *network
	near, server net.Conn
	inUse        atomic.Bool // the client has sent more than its greeting
	subscribed   atomic.Bool // what comes are messages
}

type message struct {
	bytes []byte
	at    time.Time
	lost  bool
}

// carry carries one direction. Bytes on their way arrive, also after the sender has gone: a late copy.
func (w *wire) carry(from, to net.Conn, isReply bool) {
	defer w.net.running.Done()
	under, arrived := make(chan message, 100), make(chan struct{})
	go func() { // owner: carry; ends with under; joined below
		defer close(arrived)
		deliver(to, under)
	}()
	var last time.Time
	buffer := make([]byte, 4<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			m := message{bytes: append([]byte(nil), buffer[:n]...)}
			if !isReply && bytes.Contains(m.bytes, []byte("subscribe")) {
				w.subscribed.Store(true)
			}
			if w.greets(m.bytes, isReply) {
				m.at = time.Now()
			} else {
				m.at, m.lost = w.net.arrival(last, isReply, isReply && w.subscribed.Load())
			}
			last = m.at
			w.net.record.add(m, isReply)
			under <- m
			if m.lost {
				break
			}
		}
		if err != nil {
			break
		}
	}
	if isReply {
		_ = from.Close() // always nil; nobody reads what Redis writes any more
	}
	close(under)
	<-arrived
	_ = to.Close() // always nil
	if isReply {
		w.net.mu.Lock()
		delete(w.net.open, w)
		w.net.mu.Unlock()
	}
}

// greets tells what go-redis sends, and gets, before a connection is in use: it takes no time. go-redis waits for it while it holds the mutex
// that closing a subscription takes, and synctest lets no time pass while somebody waits for a mutex: the run would stand still.
func (w *wire) greets(sent []byte, isReply bool) bool {
	if !isReply && !bytes.Contains(sent, []byte("hello")) && !bytes.Contains(sent, []byte("setinfo")) {
		w.inUse.Store(true)
	}
	return !w.inUse.Load()
}

func deliver(to io.Writer, under <-chan message) {
	gone := false
	for m := range under {
		time.Sleep(time.Until(m.at))
		if !gone && !m.lost {
			_, err := to.Write(m.bytes)
			gone = err != nil
		}
	}
}
