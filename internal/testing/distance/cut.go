package distance

import (
	"context"
	"net"
)

// Cut keeps what is sent from arriving, or lets it go on, as a network does whose packets vanish and are sent again: neither side hears
// of it. Connections stay open, new ones are made, and both are silent. Everything sent in the cut, the ends of connections included,
// arrives when it is over.
func (p *Proxy) Cut(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.way:
		if on {
			p.way = make(chan struct{})
		}
	default:
		if !on {
			close(p.way)
		}
	}
}

// through returns nil once something may come through, or the error of ctx.
func (p *Proxy) through(ctx context.Context) error {
	p.mu.Lock()
	way := p.way
	p.mu.Unlock()
	select {
	case <-way:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Break closes the connections that there are, so that both sides hear of it. New ones are welcome.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stop := range p.links {
		stop()
	}
}

// Accepted is how many connections clients have made so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// list lists a connection until it has ended.
func (p *Proxy) list(client net.Conn, stop func()) (ended func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[client] = stop
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, client)
	}
}
