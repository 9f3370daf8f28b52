package zookeeper

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cacheguard/go/consensus/internal/store"
)

// Fence is the id of the transaction that has created the node.
func (p *place) Fence() int64 { return p.fence }

// Token is the node.
func (p *place) Token() string { return path.Join(p.queue, p.node) }

// Sent is when the leader was asked for a sign of life, less what a contact is not trusted for.
func (p *place) Sent() time.Time { return p.sent }

// Keep is the session's.
func (p *place) Keep(h store.Holder) {
	p.holder = h
	p.session.Add(h)
}

// Release deletes the node. If that takes too long it goes on in the background.
func (p *place) Release(ctx context.Context) error {
	p.session.Remove(p.holder)
	result := make(chan error, 1)
	p.life.Go(func() { // owner: the Locker's life; stop: as abandon says; joined by Close
		err := p.conn.Delete(p.Token(), -1)
		result <- err
		if unanswered(err) {
			p.abandon()
		}
	})
	select {
	case err := <-result:
		if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) {
			return store.ErrGone
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// abandon deletes what was or may have been put into the queue, as it would hold up the others. It tries until there is an
// answer or the session has ended, however long that takes: servers that were frozen or have elected a leader count the session's time
// anew. Close waits for it for TTL, as the connection is closed behind it.
func (p *place) abandon() {
	if p.session == nil {
		return
	}
	var last time.Time // zero: nobody closes the Locker
	for attempts := 0; p.conn.SessionID() == p.session.id; attempts++ {
		if !unanswered(p.takeBack()) {
			return
		}
		switch now := time.Now(); {
		case p.life.Ending.Err() == nil:
		case last.IsZero():
			last = now.Add(p.cfg.TTL)
		case now.After(last):
			return
		}
		timer := time.NewTimer(min(p.cfg.TTL/contacts, time.Millisecond<<min(attempts, 10)))
		<-timer.C // not Life.Pause, which Close ends: the session goes on without the Locker
	}
}

func (p *place) takeBack() error {
	if p.node == "" {
		if _, err := p.conn.Sync(root); err != nil {
			return err
		}
		all, err := p.children()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(node string) bool { return strings.HasPrefix(node, p.id) })
		if i < 0 {
			return nil
		}
		p.node = all[i]
	}
	return p.conn.Delete(p.Token(), -1)
}
