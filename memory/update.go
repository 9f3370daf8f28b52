package memory

// The scripts of internal/cache/protocol about updates. Where the keys of the lock come first, those of beginUpdate follow.

const lockKeys = 6

func beginUpdate(r *run, keys, args []string) any {
	token, ms := args[0], number(args[1])
	more := []string{"holder:" + token, r.holding(args[4])}
	err := r.setIntent(keys[0], token, args[1], more...)
	if err == errWrongType { //nolint:errorlint // it is this one, or another
		r.del(keys[0])
		err = r.setIntent(keys[0], token, args[1], more...)
	}
	if err != nil {
		return err
	}
	r.forget(keys, args[2], args[3], "")
	var generation any = int64(1)
	if len(args) > 6 {
		generation = r.provable(keys, args)
	}
	r.extendTTL(keys[0], ms)
	return generation
}

// provable makes a lease that nobody holds, and returns its generation.
func (r *run) provable(keys, args []string) string {
	lease := keys[1+number(args[5])]
	limit, _ := r.clearExpired(keys, keys[1])
	r.dropExpired(keys[0])
	generation := args[0] + itoa(r.micros)
	if len(args) > 7 {
		generation = args[0] + args[7]
	}
	if r.try(func() { r.hset(lease, append([]string{"generation", generation}, untilField(limit)...)...) }) != nil {
		return ""
	}
	r.pexpire(lease, within(number(args[6]), limit))
	return generation
}

func endUpdate(r *run, keys, args []string) any {
	r.forget(keys, args[1], args[2], "")
	r.hdel(keys[0], "writer:"+args[0], "holder:"+args[0])
	r.endIntent(keys)
	return int64(1)
}

// endIntent removes an intent under which nobody writes any more.
func (r *run) endIntent(keys []string) {
	in := r.intentOf(keys[0])
	if in.left <= 0 {
		r.del(keys[0])
		r.wakeReaders(keys, in.inboxes)
	}
}

func put(r *run, keys, args []string) any {
	slot, offset, id := number(args[3]), number(args[9]), args[8]
	value, token := keys[6+slot], args[0]
	if it, _ := r.peek(value, str); it != nil && between(it.text, offset, offset+int64(len(id))-1) == id {
		return "stored"
	}
	status := "refused"
	l := r.leaseOf(keys[1+slot])
	generation := l.get("generation")
	var limit int64
	var over bool
	if l.get("until").there {
		limit, over = r.clearExpired(keys, keys[1])
		over = over || limit == 0
	}
	if generation.is(args[4]) && !over && r.hexists(keys[0], "writer:"+token) {
		status = r.stored(value, args[6]+written(r.now, limit > 0)+args[7], within(number(args[5]), limit))
	}
	kept := ""
	if status == "stored" {
		kept = value
	}
	r.forget(keys, args[1], args[2], kept)
	r.hdel(keys[0], "writer:"+token, "holder:"+token)
	if r.intentOf(keys[0]).writers > 0 {
		r.del(value)
		status = "refused"
	}
	r.endIntent(keys)
	return status
}

func renewUpdate(r *run, keys, args []string) any {
	if !r.hexists(keys[0], "writer:"+args[0]) {
		return int64(0)
	}
	r.hdel(keys[0], "")
	if err := r.setIntent(keys[0], args[0], args[1]); err != nil {
		return err
	}
	r.extendTTL(keys[0], number(args[1]))
	return int64(1)
}

func lockUpdate(r *run, keys, args []string) any {
	lock := readRW(r, keys[:lockKeys])
	token, lasting := args[7], args[13]
	before := lock.writerField
	if fence := lock.acquireFree(args, keys[6:13]...); fence != 0 {
		return lock.announce(keys, args, fence)
	}
	if r.err != nil {
		return r.err
	}
	fence := int64(0)
	if !before.there {
		fence = lock.acquireFree(args)
	}
	if fence == 0 {
		reply := lock.settled(func() any { return lock.acquire(args) })
		if f, got := reply.(int64); got {
			fence = f
		} else {
			r.publish(args[9], args[10])
			return reply
		}
	}
	again := before.is(args[0])
	if again && r.hexists(keys[6], "writer:"+token) {
		return fence
	}
	begin := []string{token, args[8], args[9], args[10], args[11], args[12]}
	if lasting != "0" && !again {
		begin = append(begin, lasting, itoa(fence))
	}
	if err, failed := beginUpdate(r, keys[6:], begin).(error); failed {
		return err
	}
	return fence
}

// announce is the common case: nobody updates or loads the key.
func (l *rwlock) announce(keys, args []string, fence int64) any {
	r, token, lasting := l.run, args[7], args[13]
	r.hset(keys[6], "writer:"+token, itoa(r.now+number(args[8]))+" "+args[8], "holder:"+token, r.holding(args[11]))
	r.pexpire(keys[6], number(args[8]))
	r.del(keys[13:18]...)
	r.publish(args[9], args[10])
	if lasting != "0" {
		lease := keys[7+number(args[12])]
		r.hset(lease, "generation", token+itoa(fence))
		r.pexpire(lease, number(lasting))
	}
	return fence
}

func unlockUpdate(r *run, keys, args []string) any {
	lock := readRW(r, keys[:lockKeys])
	if lock.isCommon(keys, args) {
		lock.endCommon(keys, args, "")
		return int64(1)
	}
	endUpdate(r, keys[6:], args[3:6])
	return lock.settled(func() any { return lock.release(args[:3]) })
}

func unlockPut(r *run, keys, args []string) any {
	lock := readRW(r, keys[:lockKeys])
	if lock.isCommon(keys, args) {
		slot := number(args[6])
		proof := r.leaseOf(keys[7+slot])
		if proof.get("generation").is(args[7]) && !proof.get("until").there {
			at := lock.fields[0].number()/1000 + number(args[13])
			value := keys[12+slot]
			status, kept := r.stored(value, args[9]+written(at, false)+args[10], number(args[8])), ""
			if status == "stored" {
				kept = value
			}
			lock.endCommon(keys, args, kept)
			return []any{int64(1), status}
		}
	}
	status := put(r, keys[6:], args[3:13])
	if r.err != nil {
		return r.err
	}
	return []any{lock.settled(func() any { return lock.release(args[:3]) }), status}
}

// isCommon tells whether nobody else has asked for the lock, and the intent has stood to the end, is this writer's alone, and nobody waits for it.
func (l *rwlock) isCommon(keys, args []string) bool {
	if !l.isLone(args) {
		return false
	}
	in := l.run.fields(keys[6])
	return len(in) == 2 && (in[0].field == "writer:"+args[3] || in[1].field == "writer:"+args[3])
}

// endCommon removes the intent, and the values and leases of all version slots but the value kept, and gives the lock up.
func (l *rwlock) endCommon(keys, args []string, kept string) {
	gone := []string{keys[6]}
	for _, key := range keys[8:18] {
		if key != kept {
			gone = append(gone, key)
		}
	}
	l.run.del(gone...)
	l.run.publish(args[4], args[5])
	l.releaseLone()
}
