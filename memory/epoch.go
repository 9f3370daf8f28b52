package memory

import (
	"crypto/sha1" //nolint:gosec // as the script does
	"fmt"
)

// The scripts of internal/cache/epoch. Their keys are epochs, and then the intents of transactions on each.

// lasting returns for how many ms the epoch may last; 0: as long as usual. It removes what ended with intents that have expired.
func (r *run) lasting(epoch, untils string) int64 {
	for r.err == nil {
		first, there := r.first(untils)
		if !there {
			return 0
		}
		if first.score > r.now {
			return first.score - r.now
		}
		r.zremUpTo(untils, r.now)
		r.del(epoch)
	}
	return 0
}

func makeEpochs(r *run, keys, args []string) any {
	n := len(keys) / 2
	intents := r.exists(keys[n:]...) > 0
	all := make([]any, n)
	for i, key := range keys[:n] {
		limit := int64(0)
		if intents {
			limit = r.lasting(key, keys[n+i])
		}
		epoch, length := "", 0
		if it, _ := r.peek(key, str); it != nil {
			epoch, length = it.text, len(it.text)
		}
		if length == 8 && limit == 0 {
			r.pexpire(key, number(args[1]))
		} else if length != 9 {
			hash := sha1.Sum(fmt.Appendf(nil, "%s %d %d %d", args[0], r.micros/1e6, r.micros%1e6, i+1)) //nolint:gosec // see the import
			if epoch = string(hash[:8]); limit > 0 {
				epoch += "!"
			}
			r.put(key, epoch, within(number(args[1]), limit))
		}
		all[i] = epoch
	}
	return all
}

func revokeEpochs(r *run, keys, args []string) any {
	removed := r.del(keys...)
	r.publish(args[0], args[1])
	return removed
}

func doneEpochs(r *run, keys, args []string) any {
	n := len(keys) / 2
	for _, untils := range keys[n:] {
		_ = r.try(func() { r.zrem(untils, keys[0]+" "+args[2]) }) // of another kind: no intent is there
	}
	removed := r.del(keys[:n]...)
	r.publish(args[0], args[1])
	return removed
}

func intendEpochs(r *run, keys, args []string) any {
	n, intent, renewed := len(keys)/2, keys[0]+" "+args[0], len(args) < 4
	for i := range n {
		r.lasting(keys[i], keys[n+i])
		if it, wrong := r.peek(keys[n+i], sorted); renewed && !wrong {
			if it == nil {
				return int64(0)
			}
			if _, there := it.set.scores[intent]; !there {
				return int64(0)
			}
		}
	}
	if renewed {
		r.zrem(keys[n], "")
	}
	for _, untils := range keys[n:] {
		add := func() { r.zadd(untils, r.now+number(args[1]), intent) }
		err := r.try(add)
		if r.err == nil && err == errWrongType { //nolint:errorlint // it is this one, or another
			r.del(untils)
			err = r.try(add)
		}
		if err != nil {
			return err
		}
	}
	for i, key := range keys[:n] {
		r.endWith(key, r.lasting(key, keys[n+i]))
	}
	last := number(args[1]) + number(args[2])
	for _, untils := range keys[n:] {
		r.extendTTL(untils, last)
	}
	if !renewed {
		r.publish(args[3], args[4])
	}
	return int64(1)
}

// endWith has an epoch end with the first of its intents.
func (r *run) endWith(key string, limit int64) {
	it, wrong := r.peek(key, str)
	switch {
	case it == nil && !wrong:
	case !wrong && len(it.text) == 9:
		r.pexpire(key, limit)
	default:
		limit = min(limit, r.pttl(key))
		if wrong || len(it.text) != 8 || limit <= 0 || r.try(func() { r.put(key, it.text+"!", limit) }) != nil {
			r.del(key)
		}
	}
}
