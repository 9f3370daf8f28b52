package redistest

import (
	"net"
	"strings"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/testing/distance"
)

// link is one connection of a client and the connection to the server that it has for itself.
type link struct {
	proxy          *Proxy
	client, server *net.TCPConn
	road           *distance.Stretch // on which commands reach the server; only commands uses it, and deaf
	deaf           bool              // a command was lost

	close func()        // closes both connections; may be called again
	done  chan struct{} // closed by close

	mu     sync.Mutex // also keeps writes to the client apart
	ledger ledger
	mute   bool // a reply was lost
}

func newLink(p *Proxy, client, server *net.TCPConn) (*link, error) {
	road, err := distance.NewStretch(server, 0)
	if err != nil {
		return nil, err
	}
	l := &link{proxy: p, client: client, server: server, road: road, done: make(chan struct{})}
	l.close = sync.OnceFunc(func() {
		close(l.done)
		road.Stop()
		_ = client.CloseWrite() // first, so that the client reads an end and not a reset; it may be gone
		_ = client.Close()
		_ = server.Close()
	})
	return l, nil
}

// run returns when both sides have ended.
func (l *link) run() {
	var replies sync.WaitGroup
	replies.Go(l.replies) // owner: run; stops when the server closes or at close; joined here
	l.commands()
	replies.Wait()
}

// commands passes on commands until the client ends. The server then reads what it was sent and ends too: closing its
// connection could make it lose that.
func (l *link) commands() {
	defer func() {
		_ = l.road.End()          // what was lost on it was so in a cut
		_ = l.server.CloseWrite() // it may have closed before
	}()
	for r := newRESPReader(l.client); ; {
		cmd, err := r.next()
		if err != nil || len(cmd.words) == 0 {
			return
		}
		cmd.words[0] = strings.ToLower(cmd.words[0])
		if !l.command(cmd) {
			return
		}
	}
}

// command reports whether the link takes more commands. Here and in reply, a rule counts before the client can see what
// it did.
func (l *link) command(cmd value) bool {
	weather, rule, ok := l.proxy.arrive(cmd.words, l)
	if !ok {
		return false
	}
	l.deaf = l.deaf || weather.blackHole
	if l.deaf {
		return true
	}
	l.road.Delay(weather.delay)
	due := &debt{name: cmd.words[0], arguments: len(cmd.words) - 1}
	switch {
	case rule == nil:
	case rule.fault.onReply():
		due.rule = rule
	case rule.fault == CutBefore:
		rule.took()
		return false
	case rule.fault == Hold:
		rule.took()
		if !l.wait(rule.open) {
			return false
		}
	default:
		due.answer = []byte(string(rule.fault) + "\r\n")
		rule.took()
		l.owe(due)
		return true
	}
	l.owe(due)
	raw := cmd.raw
	if edit := l.proxy.edit; edit != nil {
		raw = encode(edit(cmd.words))
	}
	_, err := l.road.Write(raw)
	return err == nil
}

// wait returns when c is closed, and reports whether the link is still there.
func (l *link) wait(c <-chan struct{}) bool {
	select {
	case <-c:
	case <-l.done:
		return false
	}
	return true
}

// owe notes that a command is to be replied to, and replies if the proxy does that and it is the command's turn.
func (l *link) owe(d *debt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger.add(d)
	l.answer()
}

// answer sends the proxy's own replies that are due.
func (l *link) answer() {
	for _, d := range l.ledger.answered() {
		l.send(d.answer)
	}
}

// replies passes on replies until the server ends.
func (l *link) replies() {
	defer l.close()
	for r := newRESPReader(l.server); ; {
		v, err := r.next()
		if err != nil || !l.reply(v) {
			return
		}
	}
}

// reply reports whether the link takes more replies.
func (l *link) reply(v value) bool {
	l.mu.Lock()
	d, last := l.ledger.match(v)
	subscriber := l.ledger.subscriber
	l.mu.Unlock()
	swallow, lose := false, false
	if rule := d.take(v); rule != nil {
		switch rule.fault {
		case DropReply:
			rule.took()
			l.close()
			return false
		case HoldReply:
			rule.took()
			if !l.wait(rule.open) {
				return false
			}
		case SwallowReply:
			rule.took()
			swallow = true
		case LoseReply:
			rule.took()
			lose = true
		}
	}
	weather := l.proxy.now()
	if subscriber {
		time.Sleep(weather.delaySubscribers)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if swallow && !l.mute {
		time.AfterFunc(lost, l.close) // it does nothing if the link has gone before
	}
	l.mute = l.mute || swallow || weather.blackHole && d != nil
	if !lose && !weather.blackHole && !(weather.blackHoleSubscribers && l.ledger.subscriber) {
		l.send(v.raw)
	}
	if last {
		l.ledger.settle()
		l.answer()
	}
	return true
}

// send writes to the client, unless it has missed something. That it has gone is for commands to find; what the server
// sends is read to the end.
func (l *link) send(raw []byte) {
	if !l.mute {
		_, _ = l.client.Write(raw)
	}
}
