package tier

import "github.com/cacheguard/go/internal/redis/wake"

// Local is the tier of a Guard, with its subscription to notices. The methods of a nil Local do nothing; its methods of
// Tier need one.
type Local struct {
	*Tier
	Probes Probes

	inbox    *wake.Inbox
	listener *wake.Listener
}

// Open makes a tier that hears notices through the inbox. Dropped is called when it has to drop everything, with how
// many entries it has.
func Open(limits Limits, inbox *wake.Inbox, n *Notices, dropped func(entries int)) (*Local, error) {
	t, err := New(limits, inbox.Live)
	if err != nil {
		return nil, err
	}
	l := &Local{Tier: t, inbox: inbox}
	l.listener = &wake.Listener{
		Heard: func(payload string) {
			if notice, ok := t.Hear(payload, n.Own); ok {
				l.Probes.Found(notice.Key)
			}
		},
		Missed: func() {
			dropped(t.Len())
			t.Missed()
		},
	}
	inbox.Listen(n.Channel, l.listener)
	return l, nil
}

// Close ends the subscription and the tier.
func (l *Local) Close() {
	if l != nil {
		l.listener.Stop()
		l.Tier.Close()
	}
}

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
