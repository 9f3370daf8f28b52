package tier

import "sync"

// Probes are keys whose invalidation somebody waits to hear of. The zero value is ready to use.
type Probes struct {
	mu   sync.Mutex
	keys map[string]chan struct{}
}

// Add returns what is closed when a notice of the key has come.
func (p *Probes) Add(key string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil {
		p.keys = make(map[string]chan struct{})
	}
	c := make(chan struct{})
	p.keys[key] = c
	return c
}

// Remove is called when nobody waits any more.
func (p *Probes) Remove(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, key)
}

// Found is called when a notice of the key has come.
func (p *Probes) Found(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.keys[key]; c != nil {
		close(c)
		delete(p.keys, key)
	}
}
