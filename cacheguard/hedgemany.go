package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/redis/send"
)

// A GetMany that Redis keeps waiting loads beside that, as a Get does: what is late in one call, with one spare slot.

// isLate waits for a read until it is late, and reports whether it is. In a part that is slow it does not wait.
func (m *many[V]) isLate(ctx context.Context, key string, read *send.Read) bool {
	if read == nil {
		return false
	}
	late := m.guard.isSlow(key)
	if !late {
		late, _ = read.WaitLate(ctx) // the read that follows has the error
	}
	return late && m.spec.mayHedge(ctx, m.guard, key)
}

// readBeside waits for the reads, and loads their keys beside that. It reports whether that was faster, and has taken the answers then.
func (m *many[V]) readBeside(ctx context.Context, keys []string, reads []*send.Read, all []beingRead[V]) bool {
	wait := func(ctx context.Context) error {
		for i, read := range reads {
			if read == nil {
				return send.ErrClosed
			}
			if all[i].err = read.Wait(ctx); all[i].err != nil {
				for j := range all[i:] {
					all[i+j].err = all[i].err
				}
				return all[i].err
			}
		}
		return nil
	}
	hedged, won := m.beside(ctx, keys, wait, func() {})
	for _, key := range keys {
		if won {
			m.takeWon(ctx, key, hedged[key])
		}
	}
	return won
}

// gotten is what came of a ticket.
type gotten struct {
	won
	err error // there was no answer
}

// awaitAll waits for the flights of the keys.
func (m *many[V]) awaitAll(ctx context.Context, of []wanted, tickets []ticket) []gotten {
	all := make([]gotten, len(tickets))
	var raced bool
	for i := range tickets {
		if raced || of[i].key == "" {
			continue
		}
		ctx, end := m.guard.beginJoined(ctx, tickets[i], of[i].key)
		if raced = tickets[i].Late(ctx); raced {
			m.loadBeside(ctx, of[i:], tickets[i:], all[i:])
		} else {
			all[i].joined = tickets[i].Joined
			all[i].answer, all[i].err = waitFor(ctx, tickets[i], m.asked)
		}
		_ = endJoined(end, all[i].answer, all[i].err)
	}
	return all
}

// loadBeside waits for flights, the first of which is late, and loads their keys beside that.
func (m *many[V]) loadBeside(ctx context.Context, of []wanted, tickets []ticket, all []gotten) {
	var keys []string
	for _, w := range of {
		if w.key != "" {
			keys = append(keys, w.key)
		}
	}
	wait := func(ctx context.Context) (failed error) {
		for i, t := range tickets {
			if of[i].key == "" {
				continue
			}
			all[i].joined = t.Joined
			if all[i].answer, all[i].err = waitFor(ctx, t, m.asked); failed == nil {
				failed = all[i].err
			}
		}
		return failed
	}
	hedged, won := m.beside(ctx, keys, wait, func() {
		for i, t := range tickets {
			if of[i].key != "" {
				t.Keep()
			}
		}
	})
	for i, w := range of {
		if won && w.key != "" {
			all[i] = gotten{won: hedged[w.key]}
		}
	}
}

// beside waits for what is late, and loads the keys beside that, if the call may. Won: all of them were faster.
func (m *many[V]) beside(ctx context.Context, keys []string, wait func(context.Context) error, keep func()) (all map[string]won, is bool) {
	if !m.spec.mayHedge(ctx, m.guard, keys[0]) {
		_ = wait(ctx) // each key has its error
		return nil, false
	}
	all, is, _ = race(ctx, wait, func(ctx context.Context) (map[string]won, bool) { return m.hedge(ctx, keys) }, keep)
	if is {
		m.guard.hedgesWon.Add(uint64(len(keys)))
	}
	return all, is
}

// hedge loads the keys in one call, except those that are being loaded so. It succeeds if all loads do.
func (m *many[V]) hedge(ctx context.Context, keys []string) (map[string]won, bool) {
	all, ok := make(map[string]won, len(keys)), true
	for ctx := outsideLoads(ctx); ok && len(keys) > 0; {
		var rest []string
		rest, ok = m.hedgeOnce(ctx, keys, all)
		if keys = rest; len(keys) > 0 {
			ok = ok && m.guard.hedgeAgain(ctx, keys[0])
		}
	}
	return all, ok
}

// hedgeOnce returns the keys whose loads had begun before the call.
func (m *many[V]) hedgeOnce(ctx context.Context, keys []string, all map[string]won) (rest []string, ok bool) {
	g, of := m.guard, make([]wanted, len(keys))
	for i, key := range keys {
		of[i].key = key
	}
	var b *batch
	if m.spec.loadEach == nil {
		s, ok := g.loaders.limits.Take(ctx, limit.Need{Spare: true, Kind: m.spec.policyOf(g).loadSlots()})
		if !ok {
			return nil, false
		}
		b = m.batchIn(ctx, of, s)
	}
	tickets := make([]ticket, len(keys))
	for i, w := range of {
		j := m.job(ctx, b, w, false)
		j.spare = true
		var err error
		tickets[i], err = g.enter(ctx, j, hedged, func(ctx context.Context, publish func(answer)) answer {
			return g.runHedge(ctx, j, limit.Slot{}, publish)
		})
		if err != nil || tickets[i].Joined {
			j.skip()
		}
		if err != nil {
			of[i].key = ""
		}
	}
	ok = true
	for i, t := range tickets {
		if of[i].key == "" {
			ok = false
			continue
		}
		switch a, err := waitFor(ctx, t, m.asked); {
		case err != nil, a.err != nil && !a.absent:
			ok = false
		case !a.answers(m.asked, t.Joined):
			rest = append(rest, keys[i])
		default:
			all[keys[i]] = won{a, t.Joined}
		}
	}
	return rest, ok
}
