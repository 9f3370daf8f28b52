package admin

import (
	"net/http"

	"github.com/cacheguard/go/cacheguard"
)

// Probe answers the probes of an orchestrator: Live and Ready, each an http.HandlerFunc. Unlike a Handler it answers everybody, under any
// host, with a word or two. Both are cheap: they ask neither Redis nor the source.
type Probe struct {
	Guards []*cacheguard.Guard

	// NotYet says why the process is not ready although its Guards are: its first Cache.Warm is still under way, say. An empty text:
	// it is ready. It is called for each request to Ready. Default: it is ready.
	NotYet func() string

	// NeedsRedis makes a process unready while all circuit breakers of one of its Guards are open. Set it only if the source cannot do without
	// the cache for a moment: when Redis is down, it takes all instances out of service at once. Default: a Guard without Redis is
	// ready, as it loads, shares and limits loads.
	NeedsRedis bool
}

// Live answers 200 unless a Guard is closed, then 503. It means that a restart could not help: it never depends on Redis, as restarting
// all instances when Redis is down would only make things worse.
func (p *Probe) Live(w http.ResponseWriter, _ *http.Request) {
	for _, g := range p.Guards {
		if g.Stats().Closed {
			say(w, http.StatusServiceUnavailable, "closed")
			return
		}
	}
	say(w, http.StatusOK, "live")
}

// Ready answers 200 if requests may be sent here, else 503 with the reason: closed, redis does not answer, or what NotYet says.
func (p *Probe) Ready(w http.ResponseWriter, _ *http.Request) {
	for _, g := range p.Guards {
		switch s := g.Stats(); {
		case s.Closed:
			say(w, http.StatusServiceUnavailable, "closed")
			return
		case p.NeedsRedis && s.Breakers > 0 && s.BreakersOpen == s.Breakers:
			say(w, http.StatusServiceUnavailable, "redis does not answer")
			return
		}
	}
	if p.NotYet != nil {
		if why := p.NotYet(); why != "" {
			say(w, http.StatusServiceUnavailable, why)
			return
		}
	}
	say(w, http.StatusOK, "ready")
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a prober that does not read it does not want it
}
