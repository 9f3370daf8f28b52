package send

import "sync"

// Trail is what is known of the calls that were sent under one id. The zero value stands for an id that has sent none.
type Trail struct {
	mu     sync.Mutex
	closed bool                  // the id asks for nothing any more
	sent   bool                  // one may have run
	flying int                   // without a reply
	lost   bool                  // one that will never have one
	leave  func(sent, lost bool) // once nothing is in flight
}

// Leave has ended called when the last call in flight is answered or lost: at once if none is in flight. It reports
// whether any was sent at all, and whether one was lost, which may still arrive. From then on nothing is sent under the
// id.
func (t *Trail) Leave(ended func(sent, lost bool)) {
	t.mu.Lock()
	t.closed = true
	if t.flying > 0 {
		t.leave = ended
		t.mu.Unlock()
		return
	}
	sent, lost := t.sent, t.lost
	t.mu.Unlock()
	ended(sent, lost)
}

// Lose notes that a call under the id, perhaps of somebody else, was lost.
func (t *Trail) Lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent, t.lost = true, true
}

// Lost reports whether a call has no reply.
func (t *Trail) Lost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost || t.flying > 0
}

// Close reports whether a call may have run. From then on nothing is sent under the id.
func (t *Trail) Close() (sent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	return t.sent || t.flying > 0
}

// begin notes that a call is about to be written. Not ok: it must not be. A nil Trail notes nothing.
func (t *Trail) begin() (ok bool) {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.flying++
	return true
}

// end notes that it has ended, with Redis' answer, or with another error. It may call what Leave was given.
func (t *Trail) end(err error) {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.flying--
	if written(err) {
		t.sent = true
		t.lost = t.lost || !said(err)
	}
	leave, sent, lost := t.leave, t.sent, t.lost
	if t.flying > 0 || leave == nil {
		t.mu.Unlock()
		return
	}
	t.leave = nil
	t.mu.Unlock()
	leave(sent, lost)
}
