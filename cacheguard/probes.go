package cacheguard

import "sync"

// probes are keys whose invalidation somebody waits to hear of.
type probes struct {
	mu   sync.Mutex
	keys map[string]chan struct{}
}

func (p *probes) add(key string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil {
		p.keys = make(map[string]chan struct{})
	}
	c := make(chan struct{})
	p.keys[key] = c
	return c
}

func (p *probes) remove(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, key)
}

func (p *probes) found(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.keys[key]; c != nil {
		close(c)
		delete(p.keys, key)
	}
}
