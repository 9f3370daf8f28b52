package semaphore

import (
	"strconv"

	"github.com/cacheguard/go/internal/testing/model"
)

func holders(s model.Snapshot) map[string]int64 { return s.Sets[0] }

// queued is how many permits a queued token knows of, and its inbox.
func queued(s model.Snapshot, token string) (permits int, inbox string) {
	parts := s.Waiter(token, 5)
	permits, _ = strconv.Atoi(parts[3])
	return permits, parts[4]
}

// compare compares what a script of the token's has left with what was before.
func (w *world) compare(before model.Snapshot, token string, pushed int64) {
	w.checkExclusion()
	w.checkOrder(before, token)
	w.checkMessages(before, pushed)
}

// checkExclusion: no more hold, or trust that they do, than there are permits; and a token that trusts its lease has a permit.
func (w *world) checkExclusion() {
	if n := len(holders(w.Now)); n > w.most {
		w.Wrong("%d hold %d permits", n, w.most)
	}
	trust := 0
	for _, a := range w.Actors {
		if !w.Trusts(a) {
			continue
		}
		if trust++; holders(w.Now)[a.Token] == 0 {
			w.Wrong("%s trusts that it has a permit, and has none", a.Token)
		}
	}
	if trust > w.most {
		w.Wrong("%d trust that they have one of %d permits", trust, w.most)
	}
}

// checkOrder: permits go to the first of the queue, past the queue to nobody, and none is left when the first could have it.
func (w *world) checkOrder(before model.Snapshot, token string) {
	s := w.Now
	granted := func(id string) bool { return holders(before)[id] == 0 && holders(s)[id] != 0 }
	for i, id := range before.Queue {
		if !before.Lives(id, s.At) || !granted(id) {
			continue
		}
		for _, first := range before.Queue[:i] {
			if before.Lives(first, s.At) && first != token && !granted(first) {
				w.Wrong("%s has a permit before %s, which came first", id, first)
			}
		}
	}
	if token != "" && granted(token) && !before.Lives(token, s.At) {
		for _, other := range before.Queue {
			if other != token && before.Lives(other, s.At) && s.Alive()[other] != 0 && !w.Arrivals.MayPass(token, other) {
				w.Wrong("%s has a permit, past %s in the queue", token, other)
			}
		}
	}
	if len(s.Queue) == 0 {
		return
	}
	if permits, _ := queued(s, s.Queue[0]); len(holders(s)) < permits {
		w.Wrong("%d of %d permits are held, and %s waits", len(holders(s)), permits, s.Queue[0])
	}
}

// checkMessages: one for each waiter that was granted a permit.
func (w *world) checkMessages(before model.Snapshot, pushed int64) {
	told := 0
	for token := range before.Alive() {
		_, inbox := queued(before, token)
		if before.Lives(token, w.Now.At) && holders(w.Now)[token] != 0 && inbox != "" {
			told++
		}
	}
	if int(pushed) != told {
		w.Wrong("%d messages, for %d that were granted a permit", pushed, told)
	}
}
