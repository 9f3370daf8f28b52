package zookeeper

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cacheguard/go/consensus"
	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// root is above all locks.
const root = "/cacheguard-locks"

// locks is ZooKeeper as a store of locks.
type locks struct {
	conn *zk.Conn
	cfg  consensus.Config
	life *lifecycle.Life

	opening chan struct{} // has an element while somebody looks at or changes current
	current *session
}

// Acquire queues, and waits for the node before its own, and that one alone, to go. Requests cannot be given up, so a task
// makes them, which goes on when ctx ends or one of them takes too long, to leave ZooKeeper as it was.
func (s *locks) Acquire(caller context.Context, name string, wait bool) (store.Claim, error) {
	ctx, late := context.WithCancelCause(caller)
	defer late(nil)
	p := &place{locks: s, giveUp: ctx, late: late, queue: path.Join(root, "lock-"+url.PathEscape(name)), id: rand.Text(), wait: wait}
	result := make(chan error)
	s.life.Go(func() { // owner: the Locker's life; stop: giveUp, and as the connection gives requests up; joined by Close
		err := p.acquire()
		select {
		case result <- err:
			if err == nil {
				return
			}
		case <-ctx.Done():
		}
		p.abandon()
	})
	var err error
	select {
	case err = <-result:
		if err == nil {
			return p, nil
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if caller.Err() != nil && p.behind.Load() {
		err = store.Taken(err)
	}
	return nil, err
}

// place is a node in the queue of a lock.
type place struct {
	*locks

	giveUp  context.Context         //nolint:containedctx // of the caller, who may not wait for the end of the attempt
	late    context.CancelCauseFunc // ends it
	session *session
	queue   string // the lock's node
	id      string // the own node's name begins with it
	wait    bool
	behind  atomic.Bool // somebody else has the lock, or waits before it, as ZooKeeper has said
	node    string      // the own node; empty: not known
	fence   int64
	sent    time.Time
	holder  store.Holder
}

// acquire puts a node into the queue, and returns when it is the first.
func (p *place) acquire() (err error) {
	err = p.within("begin a session", func() (err error) {
		p.session, err = p.locks.session(p.giveUp)
		return err
	})
	if err != nil {
		return err
	}
	if err := p.retry("create the node", p.enter); err != nil {
		return err
	}
	for {
		before := ""
		err := p.retry("look for the node before it", func() (err error) {
			before, err = p.predecessor()
			return err
		})
		switch {
		case err != nil:
			return err
		case before == "":
			return p.retry("look for the node", p.confirm)
		case !p.wait:
			return store.ErrTaken
		}
		p.behind.Store(true)
		if err := p.awaitDeletion(before); err != nil {
			return err
		}
	}
}

// within does something for which the caller waits no longer than Timeout.
func (p *place) within(operation string, do func() error) error {
	timer := time.AfterFunc(p.cfg.Timeout, func() {
		p.late(fmt.Errorf("%s: no answer within %v: %w", operation, p.cfg.Timeout, context.DeadlineExceeded))
	})
	defer timer.Stop()
	return do()
}

// retry makes a request until it has an answer, the caller waits no longer, or the session has ended.
func (p *place) retry(operation string, request func() error) error {
	return p.within(operation, func() error {
		for attempts := 0; ; attempts++ {
			err := request()
			switch {
			case !unanswered(err):
				return err
			case p.giveUp.Err() != nil:
				return p.giveUp.Err()
			case p.over():
				return errSessionOver
			case !p.life.Pause(p.giveUp, attempts):
				return err
			}
		}
	})
}

func (p *place) over() bool {
	return p.session.Over.Err() != nil || p.conn.SessionID() != p.session.id
}

// unanswered reports whether a request may have been done or not.
func unanswered(err error) bool {
	for _, target := range []error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionMoved} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// enter creates the node, unless an earlier attempt has done so without an answer. A session's requests are done in their order, and
// requests that a server still had when the session moved to another are refused, so what is not there does not come later.
func (p *place) enter() error {
	if _, err := p.conn.Sync(p.queue); err != nil {
		return err
	}
	all, err := p.children()
	if err != nil {
		return err
	}
	for _, node := range all {
		if strings.HasPrefix(node, p.id) {
			p.node = node
			return nil
		}
	}
	made, err := p.conn.Create(path.Join(p.queue, p.id+"-"), nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNoNode) {
		if err := p.make(); err != nil {
			return err
		}
		return zk.ErrConnectionClosed // again
	}
	if err == nil {
		p.node = path.Base(made)
	}
	return err
}

// make makes what is above the node. The lock's node is a container, which goes when it is empty for a while.
func (p *place) make() error {
	_, err := p.conn.Create(root, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	if err == nil || errors.Is(err, zk.ErrNodeExists) {
		_, err = p.conn.CreateContainer(p.queue, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// children are the nodes of the queue, the first of them first.
func (p *place) children() ([]string, error) {
	all, _, err := p.conn.Children(p.queue)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(sequence(a), sequence(b)) })
	return all, err
}

// sequence is the number that ZooKeeper has put at the end of a node's name, in ten digits.
func sequence(node string) string { return node[max(0, len(node)-10):] }

// predecessor is the node before its own, if there is one.
func (p *place) predecessor() (string, error) {
	all, err := p.children()
	if err != nil {
		return "", err
	}
	switch i := slices.Index(all, p.node); i {
	case -1:
		return "", errSessionOver
	case 0:
		return "", nil
	default:
		return all[i-1], nil
	}
}

// awaitDeletion returns when something has happened to the node.
func (p *place) awaitDeletion(node string) error {
	var changed <-chan zk.Event
	err := p.retry("watch the node before it", func() (err error) {
		_, _, changed, err = p.conn.GetW(path.Join(p.queue, node))
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case <-changed:
		return nil
	case <-p.session.Over.Done():
		return errSessionOver
	case <-p.giveUp.Done():
		return p.giveUp.Err()
	}
}

// confirm makes sure that the leader knows the session, and that the node is the session's. From then on its time counts.
func (p *place) confirm() error {
	sent := time.Now()
	id, err := p.contact()
	if err != nil {
		return err
	}
	there, stat, err := p.conn.Exists(path.Join(p.queue, p.node))
	if err != nil {
		return err
	}
	if !there || stat.EphemeralOwner != id || id != p.session.id {
		return errSessionOver
	}
	p.fence, p.sent = stat.Czxid, p.trust(sent)
	return nil
}
