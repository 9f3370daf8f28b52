package redistest

import "time"

// Delay has every command reach Redis later by d, as if that were further away; 0 ends that. Many can be under way at once.
func (p *Proxy) Delay(d time.Duration) { p.change(func(w *weather) { w.delay = d }) }

// BlackHole makes commands and replies vanish, on new connections too, and no connection closes. A connection that has
// lost a command or a reply stays silent when the black hole is gone, as nothing can follow what was lost.
func (p *Proxy) BlackHole(on bool) { p.change(func(w *weather) { w.blackHole = on }) }

// BlackHoleSubscribers makes all that Redis sends vanish on the connections that have subscribed to something. They hear
// again what is sent when it is over.
func (p *Proxy) BlackHoleSubscribers(on bool) {
	p.change(func(w *weather) { w.blackHoleSubscribers = on })
}

// DelaySubscribers has each message reach the connections that have subscribed to something later by d than the one before it.
func (p *Proxy) DelaySubscribers(d time.Duration) {
	p.change(func(w *weather) { w.delaySubscribers = d })
}

func (p *Proxy) change(set func(*weather)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set(&p.weather)
}

// Cut closes all connections. New ones are welcome.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts++
	for l := range p.links {
		l.close()
	}
}

// Refuse closes all connections and the port, or opens the port again.
func (p *Proxy) Refuse(on bool) {
	p.refusing.Lock()
	defer p.refusing.Unlock()
	p.mu.Lock()
	l, accepts := p.listener, p.accepts
	if on {
		p.listener = nil
	}
	p.mu.Unlock()

	var err error
	switch {
	case on && l != nil:
		err = l.Close()
		<-accepts // until then the port may be open
		p.Cut()
	case !on && l == nil:
		err = p.listen()
	}
	p.must(err)
}
