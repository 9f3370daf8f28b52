package link

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/slab"
)

// maxAlone is how many keys a caller reads itself at most: of more, a change between goroutines is a small part.
const maxAlone = maxReads

// Question is a key to be read, and others to be read beside it.
type Question struct {
	Key    string
	Beside []string
}

// AskAll is Ask for many keys, which takes each lane once, and not once for each key. A Read is nil if the Link is closed.
func (l *Link) AskAll(ctx context.Context, questions []Question) []*Read {
	all, room := make([]*Read, len(questions)), &slab.Slab[Read]{Left: len(questions)}
	if len(l.reads) == 1 && l.reads[0].readAllAlone(ctx, questions, all, room) {
		return all
	}
	var at *lane
	for i, q := range questions {
		if next := l.reads[l.breakers.Part(q.Key)]; next != at {
			at.leave()
			at = next
			at.mu.Lock()
		}
		all[i], _ = at.joinLocked(ctx, q.Key, q.Beside, room) // refuses when it is closed only: nil
	}
	at.leave()
	return all
}

// leave gives the mutex of a lane back, if there is one, and has what was queued sent.
func (l *lane) leave() {
	if l != nil {
		l.dispatchLocked()
		l.mu.Unlock()
	}
}

// readAllAlone reads the keys on the caller's goroutine, if they are few and nothing else is under way.
func (l *lane) readAllAlone(ctx context.Context, questions []Question, all []*Read, room *slab.Slab[Read]) (done bool) {
	if len(questions) > maxAlone || !l.link.mget.Load() {
		return false
	}
	f, ok := l.beginAlone(ctx, "", false)
	if !ok {
		return false
	}
	g := &reads{lane: l, all: all}
	for i, q := range questions {
		all[i] = room.New()
		all[i].key, all[i].beside = q.Key, &g.beside
		g.beside.add(q.Beside)
	}
	cmd := redis.NewStringSliceCmd(f, g.mget(true)...)
	err := l.link.own.quick.Process(f, onceStrings{cmd})
	if err == nil && len(cmd.Val()) != g.len() {
		err = errNotSent // whatever answers so is left to the lane
	}
	g.replies = replies{found: cmd.Val(), err: err}
	l.endAlone(f, err, g.read())
	if err == nil {
		g.handOut()
	}
	return err == nil // else the lane makes other Reads
}
