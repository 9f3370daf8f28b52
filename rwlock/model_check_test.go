package rwlock

import (
	"maps"
	"slices"
	"strconv"

	"github.com/cacheguard/go/internal/testing/model"
)

// memory is how long a fence is remembered, in ms.
const memory = 600_000

// snapshot is what the server has of the lock.
type snapshot struct{ model.Snapshot }

func (s snapshot) readers() map[string]int64 { return s.Sets[0] }
func (s snapshot) writers() map[string]int64 { return s.Sets[1] }
func (s snapshot) waiting() map[string]int64 { return s.Sets[2] }
func (s snapshot) writer() string            { return s.Hash["writer"] }

// waiter is the grace and the inbox of a token that is queued.
func (s snapshot) waiter(token string) (grace int64, inbox string) {
	parts := s.Waiter(token, 4)
	grace, _ = strconv.ParseInt(parts[0], 10, 64)
	return grace, parts[3]
}

// held is the tokens that hold the lock, and until when.
func (s snapshot) held() map[string]int64 {
	held := make(map[string]int64)
	maps.Copy(held, s.readers())
	if s.writer() != "" {
		held[s.writer()] = s.Number("deadline")
	}
	return held
}

// lives reports whether a queued token was believed to live at a time. A token that has acted itself does not count.
func (s snapshot) lives(token string, at int64, actor string) bool {
	return token != actor && s.Lives(token, at)
}

func (w *world) now() snapshot { return snapshot{w.Now} }

// compare compares what a script of the token's has left with what was before.
func (w *world) compare(was model.Snapshot, token string, pushed int64) {
	before := snapshot{was}
	w.checkExclusion()
	w.checkTrust()
	w.checkOrder(before, token)
	w.checkPhases(before)
	w.checkFences(before)
	w.checkKept()
	w.checkMessages(before, pushed)
}

func (w *world) checkExclusion() {
	s := w.now()
	if s.writer() != "" && len(s.readers()) > 0 {
		w.Wrong("%s writes beside readers %v", s.writer(), s.readers())
	}
	var writer, other *model.Actor
	for _, a := range w.Actors {
		if !w.Trusts(a) {
			continue
		}
		if writes(a) && writer == nil {
			writer = a
		} else {
			other = a
		}
	}
	if writer != nil && other != nil {
		w.Wrong("%s trusts that it writes, and %s that it holds", writer.Token, other.Token)
	}
}

// checkTrust: a token that trusts its lease has it.
func (w *world) checkTrust() {
	for _, a := range w.Actors {
		if !w.Trusts(a) {
			continue
		}
		_, reads := w.now().readers()[a.Token]
		if writes(a) && w.now().writer() != a.Token {
			w.Wrong("%s trusts that it writes, and does not", a.Token)
		}
		if !writes(a) && !reads && w.now().writer() != a.Token { // its downgrade may not have arrived
			w.Wrong("%s trusts that it reads, and does not", a.Token)
		}
	}
}

// checkOrder: the lock goes to the first writer of the queue, to all readers at once, and past the queue to nobody.
func (w *world) checkOrder(before snapshot, token string) {
	s := w.now()
	first := ""
	for _, q := range before.Queue {
		if before.lives(q, s.At, "") && (q != token || s.writer() == q) {
			first = q
			break
		}
	}
	_, queued := before.writers()[s.writer()]
	queued = queued && before.lives(s.writer(), s.At, "")
	switch {
	case s.writer() == "" || s.writer() == before.writer():
	case queued && s.writer() != first:
		w.Wrong("%s writes before %s, which came first", s.writer(), first)
	case !queued && first != "":
		w.Wrong("%s writes, past %s in the queue", s.writer(), first)
	}
	for reader := range s.readers() {
		_, read := before.readers()[reader]
		_, waited := before.waiting()[reader]
		waited = waited && before.lives(reader, s.At, "")
		if !read && !waited && reader != before.writer() && first != "" {
			w.Wrong("%s reads, past writer %s in the queue", reader, first)
		}
		for other := range s.waiting() {
			if !read && waited && before.lives(other, s.At, token) {
				w.Wrong("%s was admitted, and %s was not", reader, other)
			}
		}
	}
	if len(s.held()) == 0 && len(s.writers())+len(s.waiting()) > 0 {
		w.Wrong("the lock is free, and writers %v and readers %v wait", s.writers(), s.waiting())
	}
	if s.writer() == "" && len(s.writers()) == 0 && len(s.waiting()) > 0 {
		w.Wrong("readers %v wait for no writer", s.waiting())
	}
}

// checkPhases: a reader waits for at most one writer.
func (w *world) checkPhases(before snapshot) {
	seen := make(map[string]map[int64]bool)
	for reader := range w.now().waiting() {
		turns := w.phases[reader]
		if turns == nil || !before.lives(reader, w.now().At, "") { // it has queued, perhaps anew
			turns = make(map[int64]bool)
		}
		if w.now().writer() != "" {
			turns[w.now().Number("fence")] = true
		}
		if len(turns) > 1 {
			w.Wrong("reader %s waits for writers %v", reader, turns)
		}
		seen[reader] = turns
	}
	w.phases = seen
}

// checkFences: each writer's fence is larger than all before.
func (w *world) checkFences(before snapshot) {
	fence := w.now().Number("fence")
	if fence < w.fence || w.now().writer() != "" && w.now().writer() != before.writer() && fence <= w.fence {
		w.Wrong("fence %d of %s comes after %d", fence, w.now().writer(), w.fence)
	}
	w.fence = max(w.fence, fence)
	for _, a := range w.Actors {
		if w.Trusts(a) && writes(a) && a.Fence != fence {
			w.Wrong("%s has fence %d, the lock %d", a.Token, a.Fence, fence)
		}
	}
}

// checkKept: the hash outlives the writer's lease by as long as a fence is remembered.
func (w *world) checkKept() {
	if s := w.now(); s.writer() != "" && s.Number("kept") < s.Number("deadline")+memory {
		w.Wrong("the hash is kept until %d, the lease until %d", s.Number("kept"), s.Number("deadline"))
	}
}

// until is when the last lease ends.
func (s snapshot) until() int64 {
	if s.writer() != "" {
		return s.Number("deadline")
	}
	return slices.Max(append(slices.Collect(maps.Values(s.readers())), 0))
}

// hastens reports whether the first writer of the queue may have to be notified that what it waits for ends sooner than it knows, and
// before its next heartbeat; and whether it must be, as far as the model can see.
func (s snapshot) hastens(before snapshot) (may, must bool) {
	first := slices.IndexFunc(s.Queue, func(token string) bool { return before.lives(token, s.At, "") }) // not the token that asks again
	if first < 0 {
		return false, false
	}
	grace, inbox := before.waiter(s.Queue[first])
	if inbox == "" {
		return false, false
	}
	sooner := s.until() < min(before.until(), s.At+before.Number("longest"))
	return true, sooner && 3*(s.until()-s.At) < grace
}

// checkMessages: one for the process of each writer that was granted the lock, one for each process with granted readers, and one
// for the first writer if what it waits for ends sooner.
func (w *world) checkMessages(before snapshot, pushed int64) {
	told := make(map[string]bool)
	for token := range before.Alive() {
		_, inbox := before.waiter(token)
		if !before.lives(token, w.now().At, "") {
			continue
		}
		if _, reads := w.now().readers()[token]; reads && inbox != "" {
			told[inbox] = true
		}
		if w.now().writer() == token && inbox != "" {
			told["of "+token] = true
		}
	}
	most, least := int64(len(told)), int64(len(told))
	may, must := w.now().hastens(before)
	if may {
		most++
	}
	if must {
		least++
	}
	if pushed < least || pushed > most {
		w.Wrong("%d messages for %v, and the first writer (may: %v, must: %v)", pushed, told, may, must)
	}
}
