package wake

import (
	"maps"
	"slices"
)

// Listener hears all messages of a channel that many processes share. Its functions must not block.
type Listener struct {
	Heard func(payload string)

	// Missed is called when messages may have been lost, and also when the subscription first stands, before Live says
	// so. It must not call the inbox. Expected: the inbox itself has made the subscription anew, as there is one more
	// channel.
	Missed func(expected bool)

	in      *hub
	channel string
}

// Listen begins to listen to the channel, once the inbox has started; a subscription that stands already is replaced.
// The caller calls Stop when it is done. Not for a Ring, where a script's message comes from the shard that ran it.
func (in *hub) Listen(channel string, l *Listener) {
	l.in, l.channel = in, channel
	in.mu.Lock()
	others := in.listeners[channel]
	in.listeners[channel] = append(slices.Clip(others), l)
	if len(others) == 0 {
		in.version++
	}
	in.mu.Unlock()
	if len(others) == 0 {
		in.renew()
	}
}

// Stop ends the listening. The channel stays subscribed as long as the subscription does.
func (l *Listener) Stop() {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(l.in.listeners[l.channel]), func(other *Listener) bool { return other == l })
	if l.in.listeners[l.channel] = rest; len(rest) == 0 {
		delete(l.in.listeners, l.channel)
	}
}

// Live reports whether the subscription stands, as far as one can know.
func (in *hub) Live() bool { return in.live.Load() }

// renew has every link subscribe anew. Until then, the inbox is not live. It does not wait: go-redis does not let go of
// a subscription while it dials.
func (in *hub) renew() {
	in.mu.Lock()
	links := slices.Collect(maps.Values(in.links))
	in.renewed = in.renewed || in.live.Load()
	in.mu.Unlock()
	for _, l := range links {
		l.drop(nil)
		in.life.Go(l.renew) // stop: the client's time-outs; joined by close
	}
}

// channels are those to subscribe to.
func (in *hub) channels() (channels []string, version int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	channels = slices.AppendSeq(slices.Collect(maps.Keys(in.inboxes)), maps.Keys(in.listeners))
	return channels, in.version
}

func (in *hub) listening() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.listeners) > 0
}

func (in *hub) broadcast(channel, payload string) {
	in.mu.Lock()
	listeners := in.listeners[channel]
	in.mu.Unlock()
	for _, l := range listeners {
		l.Heard(payload)
	}
}

func (in *hub) missedLocked() {
	expected := in.renewed
	in.renewed = false
	for _, set := range in.listeners {
		for _, l := range set {
			l.Missed(expected)
		}
	}
}

// observer hears whether the subscription stands, and why not, as far as that is known.
type observer func(live bool, why error)

// OnLive calls f when the subscription stands, at once if it does; when it does not any more; and from then on, or from
// Start on, whenever it could not be had, with the reason. Calls do not overlap. They are made by the goroutines of the
// subscription: f must be quick. f may be called once more while stop runs.
func (in *Inbox) OnLive(f func(live bool, why error)) (stop func()) {
	o := observer(func(live bool, why error) {
		if live || in.started.Load() { // others of the client may need messages, and this inbox none yet
			f(live, why)
		}
	})
	in.telling.Lock()
	defer in.telling.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.observers == nil {
		in.observers = make(map[*observer]struct{})
	}
	in.observers[&o] = struct{}{}
	if in.told {
		f(true, nil)
	}
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.observers, &o)
	}
}

// tell tells observers of a change, outside of the mutex. It looks again after that: a late caller must not have the
// last word.
func (in *hub) tell(why error) {
	in.telling.Lock()
	defer in.telling.Unlock()
	for in.live.Load() != in.told {
		in.told = !in.told
		in.tellLocked(why)
	}
}

// failed tells observers why the subscription could not be had.
func (in *hub) failed(why error) {
	in.telling.Lock()
	defer in.telling.Unlock()
	if !in.told {
		in.tellLocked(why)
	}
}

func (in *hub) tellLocked(why error) {
	in.mu.Lock()
	observers := slices.Collect(maps.Keys(in.observers))
	in.mu.Unlock()
	for _, f := range observers {
		(*f)(in.told, why)
	}
}
