package redistest

import (
	"bytes"
	"strings"
)

// ledger matches what a server sends to the commands of a connection. Replies come in the order of the commands.
// Messages to subscribers come at any time, and a command that subscribes has one of them for each channel as its reply.
type ledger struct {
	debts      []*debt
	subscriber bool                       // RESP2 has messages only then
	channels   map[string]map[string]bool // by the command that subscribed, the names
}

// debt is a command without its reply.
type debt struct {
	name      string
	arguments int
	rule      *Rule  // whose fault is in the reply, or nil
	answer    []byte // the proxy's own reply: the server does not know of the command
	left      int    // confirmations to come, from the first one on
}

// add notes a command.
func (g *ledger) add(d *debt) {
	g.debts = append(g.debts, d)
	if _, ok := subscribing[d.name]; ok {
		g.subscriber = true
	}
}

// subscribing has for each command that subscribes or unsubscribes the one that subscribes.
var subscribing = map[string]string{
	"subscribe": "subscribe", "unsubscribe": "subscribe",
	"psubscribe": "psubscribe", "punsubscribe": "psubscribe",
	"ssubscribe": "ssubscribe", "sunsubscribe": "ssubscribe",
}

// match returns the command that a value replies to, and whether that is all of the reply. It is nil for a message that
// replies to nothing.
func (g *ledger) match(v value) (d *debt, last bool) {
	if len(g.debts) > 0 {
		d = g.debts[0]
	}
	if !g.isMessage(v) {
		return d, d != nil
	}
	verb, confirms := subscribing[first(v.words)]
	if !confirms {
		return nil, false
	}
	if d == nil || d.name != v.words[0] {
		d = nil
	} else if d.left == 0 {
		d.left = max(1, d.arguments)
		if d.arguments == 0 {
			d.left = max(1, len(g.channels[verb]))
		}
	}
	g.track(verb, v.words)
	if d == nil {
		return nil, false
	}
	d.left--
	return d, d.left == 0
}

// isMessage tells messages from replies.
func (g *ledger) isMessage(v value) bool {
	switch v.kind {
	case '>':
		return true
	case '*':
		switch word := first(v.words); word {
		case "message", "pmessage", "smessage":
			return g.subscriber
		default:
			return g.subscriber && subscribing[word] != ""
		}
	}
	return false
}

// track keeps the channels, as a command that unsubscribes from all of them has as many confirmations.
func (g *ledger) track(verb string, words []string) {
	if len(words) < 2 {
		return
	}
	if words[0] != verb {
		delete(g.channels[verb], words[1])
		return
	}
	if g.channels == nil {
		g.channels = make(map[string]map[string]bool)
	}
	if g.channels[verb] == nil {
		g.channels[verb] = make(map[string]bool)
	}
	g.channels[verb][words[1]] = true
}

// settle strikes the oldest command.
func (g *ledger) settle() { g.debts = g.debts[1:] }

// answered strikes and returns the oldest commands that the proxy answers.
func (g *ledger) answered() []*debt {
	n := 0
	for n < len(g.debts) && g.debts[n].answer != nil {
		n++
	}
	due := g.debts[:n]
	g.debts = g.debts[n:]
	return due
}

// take returns the rule with a fault for the reply, once. A script that was not there did not run, and the client is
// going to send its source: the rule waits for that.
func (d *debt) take(v value) *Rule {
	if d == nil || d.rule == nil {
		return nil
	}
	rule := d.rule
	d.rule = nil
	if strings.HasPrefix(d.name, "evalsha") && bytes.HasPrefix(v.raw, []byte("-NOSCRIPT")) {
		rule.giveBack()
		return nil
	}
	return rule
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}
