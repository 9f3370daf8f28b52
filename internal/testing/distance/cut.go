package distance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
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

// variable tells a process that it is to be the proxy.
const variable = "CACHEGUARD_DISTANCE"

// Remote is a Proxy in a process of its own, where it waits for no goroutine of this one, and none of what it costs counts here.
type Remote struct {
	addr string
	cmd  *exec.Cmd
	life io.Closer // the standard input, whose end ends the proxy, also when this process dies
}

// Apart starts this program once more, as the proxy, until Close. The program must call Main first of all.
func Apart(upstream string, roundTrip time.Duration) (*Remote, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if os.Getenv(variable) != "" {
		return nil, errors.New("distance: this program was started to be the proxy, and did not call Main")
	}
	cmd := exec.Command(program) //nolint:noctx // Close ends it
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %v", variable, upstream, roundTrip))
	cmd.Stderr = os.Stderr
	life, ierr := cmd.StdinPipe()
	says, oerr := cmd.StdoutPipe()
	if err := errors.Join(ierr, oerr); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &Remote{cmd: cmd, life: life}
	if r.addr, err = bufio.NewReader(says).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("distance: no proxy: %w", err), r.Close())
	}
	r.addr = strings.TrimSpace(r.addr)
	return r, nil
}

// Addr is the proxy's host:port.
func (r *Remote) Addr() string { return r.addr }

// Close ends the process, and waits for it.
func (r *Remote) Close() error {
	_ = r.life.Close()
	return r.cmd.Wait()
}

// Main does not return in a process that Apart started: it is the proxy until its standard input ends, and exits.
func Main() {
	setting := os.Getenv(variable)
	if setting == "" {
		return
	}
	signal.Ignore(os.Interrupt) // it ends with its parent, which may have something to finish
	if err := serve(setting, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "distance:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(setting string, life io.Reader, w io.Writer) error {
	upstream, text, _ := strings.Cut(setting, " ")
	roundTrip, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	p, err := Start(upstream, roundTrip)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, p.Addr())
	if err == nil {
		_, err = io.Copy(io.Discard, life)
	}
	return errors.Join(err, p.Close())
}
