package memory

// The scripts of internal/cache/protocol about intents of transactions.

func intend(r *run, keys, args []string) any {
	untils, ends := keys[0], r.now+number(args[1])
	add := func() { r.zadd(untils, ends, args[0]) }
	err := r.try(add)
	if err == errWrongType { //nolint:errorlint // it is this one, or another
		r.del(untils)
		err = r.try(add)
	}
	if err != nil {
		return err
	}
	limit, _ := r.clearExpired(keys, untils)
	for _, key := range keys[1+slots:] {
		if r.outlasts(key, limit) {
			r.mark(key, number(args[5]))
			r.pexpire(key, limit)
		}
	}
	for _, key := range keys[1 : 1+slots] {
		if r.exists(key) == 0 {
			continue
		}
		cut := r.outlasts(key, limit)
		if r.try(func() { r.hset(key, "until", "1") }) != nil {
			r.del(key)
		} else if cut {
			r.pexpire(key, limit)
		}
	}
	r.extendTTL(untils, number(args[1])+number(args[2]))
	r.publish(args[3], args[4])
	return int64(1)
}

// outlasts reports whether a key would not end with the intent.
func (r *run) outlasts(key string, limit int64) bool {
	left := r.pttl(key)
	return left == -1 || left > limit
}

// mark marks an entry, so that local tiers do not keep it.
func (r *run) mark(key string, at int64) {
	it, wrong := r.peek(key, str)
	if wrong {
		r.del(key)
		return
	}
	stamp := between(it.text, at, at+6)
	if len(stamp) < 7 {
		return
	}
	check := byte(endsMark)
	for i := range 6 {
		check += stamp[i]
	}
	if r.try(func() { r.overwrite(key, at+6, string([]byte{check})) }) != nil {
		r.del(key)
	}
}

func renewIntend(r *run, keys, args []string) any {
	untils := keys[0]
	if len(keys) > 1 {
		r.clearExpired(keys, untils)
	}
	if it, wrong := r.peek(untils, sorted); !wrong {
		if it == nil {
			return int64(0)
		}
		if ends, there := it.set.scores[args[0]]; !there || ends <= r.now {
			return int64(0)
		}
	}
	r.zrem(untils, "")
	r.zadd(untils, r.now+number(args[1]), args[0])
	r.extendTTL(untils, number(args[1])+number(args[2]))
	return int64(1)
}

func done(r *run, keys, args []string) any {
	_ = r.try(func() { r.zrem(keys[0], args[0]) }) // of another kind: no intent is there
	return r.forget(keys, args[1], args[2], "")
}
