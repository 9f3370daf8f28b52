package send

import (
	"context"

	"github.com/cacheguard/go/internal/redis/slab"
)

// Question is a key to be read, and others to be read beside it.
type Question struct {
	Key    string
	Beside []string
}

// AskAll is Ask for many keys, which takes each lane once, and not once for each key. A Read is nil if the Link is
// closed.
func (l *Link) AskAll(ctx context.Context, questions []Question) []*Read {
	all, room := make([]*Read, len(questions)), &slab.Slab[Read]{Left: len(questions)}
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
