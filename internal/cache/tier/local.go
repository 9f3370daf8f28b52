package tier

import (
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/wake"
)

// Local is the tier of a Guard, with its subscription to notices. The methods of a nil Local do nothing; its methods of
// Tier need one.
type Local struct {
	*Tier

	inbox    *wake.Inbox
	listener *wake.Listener
	echoes   *wake.Echoes // nil: none are needed
	leave    func()       // gives up the echoes
}

// Open makes a tier that hears notices through the inbox. Heard is called for each; dropped is called when it has to
// drop everything because of some trouble, with how many entries it has. Neither may block.
func Open(limits Limits, inbox *wake.Inbox, n *Notices, parts Parts, heard func(Notice), dropped func(entries int)) (*Local, error) {
	l := &Local{inbox: inbox, leave: func() {}}
	var err error
	if limits.MaxLag > 0 {
		l.echoes, l.leave = inbox.Echoes(len(n.parts), &wake.Asker{Every: limits.MaxLag / 2, Ask: parts.AskEcho})
		limits.Echo = func(key string) *wake.Echo { return l.echoes.Of(parts.PartOf(key)) }
	}
	if l.Tier, err = New(limits, inbox.Live); err != nil {
		l.leave()
		return nil, err
	}
	t := l.Tier
	t.feed.lost = func() {
		dropped(t.Len())
		t.Void()
	}
	l.listener = &wake.Listener{
		Heard: func(payload string) {
			if n, is := t.Hear(payload, n.Own); is {
				heard(n)
			}
		},
		Missed: func(expected bool) {
			if !expected {
				dropped(t.Len())
			}
			t.Missed()
		},
	}
	inbox.Listen(n.Channel, l.listener)
	return l, nil
}

// Parts are the parts of the keyspace, which fail one by one.
type Parts interface {
	PartOf(key string) int
	AskEcho(part int, echo func(key string) *script.Call) // see wake.Asker
}

// Close ends the subscription and the tier.
func (l *Local) Close() {
	if l != nil {
		l.listener.Stop()
		l.leave()
		l.Tier.Close()
	}
}

// NeedsEchoes reports whether the tier is only used where scripts may publish.
func (l *Local) NeedsEchoes() bool { return l != nil && l.echoes != nil }

// Deaf reports whether echoes are asked for, and do not come back.
func (l *Local) Deaf() bool { return l.NeedsEchoes() && l.echoes.Missing(l.MaxLag) }

// Mark is called before a key is read; see the type Mark.
func (l *Local) Mark(key string) Mark {
	if l == nil {
		return Mark{}
	}
	l.inbox.Start() // it does so once
	return l.Tier.Mark(key)
}

// Forget drops keys that were invalidated.
func (l *Local) Forget(keys ...string) {
	if l == nil {
		return
	}
	for _, key := range keys {
		l.Tier.Forget(key)
	}
}

// ForgetMany drops the entries made under a name that was invalidated.
func (l *Local) ForgetMany(name string) {
	if l != nil {
		l.Tier.ForgetMany(name)
	}
}
