package redistest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Proxy stands before a server and breaks what passes.
type Proxy struct {
	tb       testing.TB // nil for a proxy that tests share: it panics
	addr     string
	release  func() error // gives the address up
	upstream string
	tasks    sync.WaitGroup          // the acceptor and the links
	edit     func([]string) []string // if set, before the first client comes: what the server gets in place of a command

	refusing sync.Mutex // held by Refuse

	mu       sync.Mutex
	listener net.Listener  // nil while connections are refused
	accepts  chan struct{} // closed when the last listener accepts nothing more
	links    map[*link]struct{}
	cuts     int // a link from before a cut must not outlive it
	weather
	rules  []*Rule
	counts map[string]int
}

// weather is the faults that are for all commands.
type weather struct {
	delay                time.Duration
	blackHole            bool
	blackHoleSubscribers bool
	delaySubscribers     time.Duration
}

// StartProxy runs a proxy before the server at upstream until the test ends.
func StartProxy(tb testing.TB, upstream string) *Proxy {
	tb.Helper()
	p := newProxy(tb, upstream)
	if err := p.listenAnywhere(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.close)
	return p
}

// newProxy makes a proxy that does not listen yet.
func newProxy(tb testing.TB, upstream string) *Proxy {
	return &Proxy{
		tb: tb, upstream: upstream, links: make(map[*link]struct{}), counts: make(map[string]int),
		release: func() error { return nil },
	}
}

func (p *Proxy) close() {
	p.Refuse(true)
	p.tasks.Wait()
	p.must(p.release())
}

// Addr is the proxy's host:port.
func (p *Proxy) Addr() string { return p.addr }

// Client returns a new client of the proxy that closes when tb ends. tweaks may change its options.
func (p *Proxy) Client(tb testing.TB, tweaks ...func(*redis.Options)) *redis.Client {
	return closeAtEnd(tb, newClient(p.addr, tweaks...))
}

// On makes a rule. A command has the fault of the oldest rule that wants it.
func (p *Proxy) On(match Match, fault Fault) *Rule {
	r := newRule(match, fault)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

// Commands is how often clients have sent each command, by its lower-case name, whether or not it reached the server.
func (p *Proxy) Commands() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// listenAnywhere listens on a free port.
func (p *Proxy) listenAnywhere() error {
	port, release, err := takePort()
	if err == nil {
		p.addr, p.release = local(port), release
		err = p.listen()
	}
	if err != nil {
		return fmt.Errorf("redistest: proxy: %w", err)
	}
	return nil
}

// listen waits for the port: a child of this process that does not run its program yet has what was just closed.
func (p *Proxy) listen() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var l net.Listener
	err := await(ctx, func() (err error) {
		l, err = net.Listen("tcp", p.addr)
		return err
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	accepts := make(chan struct{})
	p.listener, p.accepts = l, accepts
	p.tasks.Go(func() { defer close(accepts); p.accept(l) }) // owner: proxy; stops when Refuse closes l; joined at the end of the test
	return nil
}

// must fails the test if there is an error.
func (p *Proxy) must(err error) {
	switch {
	case err == nil:
	case p.tb == nil:
		panic(err)
	default:
		p.tb.Helper()
		p.tb.Fatal(err)
	}
}

func (p *Proxy) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		born := p.cuts
		p.mu.Unlock()
		// owner: proxy; stops when a side closes or Cut closes both; joined at the end of the test
		p.tasks.Go(func() { p.serve(l, conn.(*net.TCPConn), born) })
	}
}

// serve connects a client that l accepted to the server.
func (p *Proxy) serve(l net.Listener, client *net.TCPConn, born int) {
	server, err := net.DialTimeout("tcp", p.upstream, dialTimeout)
	if err != nil {
		_ = client.Close() // the client sees that there is no server
		return
	}
	link, err := newLink(p, client, server.(*net.TCPConn))
	if err != nil {
		_ = client.Close()
		_ = server.Close()
		if p.tb == nil {
			panic(err)
		}
		p.tb.Error(err)
		return
	}
	p.mu.Lock()
	if p.cuts == born && p.listener == l {
		p.links[link] = struct{}{}
	} else {
		link.close()
	}
	p.mu.Unlock()
	link.run()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, link)
}

// arrive counts a command and says what is to happen to it. A black hole leaves nothing to the rules. Not ok: the link was
// closed, as the client may know; a rule that was made since is not for what was sent before.
func (p *Proxy) arrive(args []string, link *link) (_ weather, _ *Rule, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if closed(link.done) {
		return weather{}, nil, false
	}
	p.counts[args[0]]++
	if p.blackHole {
		return p.weather, nil, true
	}
	for _, r := range p.rules {
		if r.claim(args) {
			return p.weather, r, true
		}
	}
	return p.weather, nil, true
}

func (p *Proxy) now() weather {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.weather
}
