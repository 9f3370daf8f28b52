package memory

import "strconv"

// run is one run of a command or a script. Its methods are the commands of Redis. The first that fails ends the run, as in a script:
// what comes behind it does nothing, and what was done stays done. try is for those that may fail.
type run struct {
	engine *engine
	keys   *store
	now    int64 // in ms
	micros int64

	err   error
	wrote bool // something: then more may be written though memory is full, as in a script of Redis

	// Of tests, which plant a difference: the skip-th write is not done, TTLs are longer, or nothing is published.
	skip  int
	later int64
	mute  bool
}

// refusal is an error of Redis.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError marks it as an answer.
func (refusal) RedisError() {}

const (
	errWrongType refusal = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errFull      refusal = "OOM command not allowed when used memory > 'maxmemory'."
	errSyntax    refusal = "ERR syntax error"
	errInteger   refusal = "ERR value is not an integer or out of range"
	errExpire    refusal = "ERR invalid expire time"
)

// maybe is a text that may not be there.
type maybe struct {
	text  string
	there bool
}

// number is 0 where there is none.
func (m maybe) number() int64 { return number(m.text) }

// is tells whether it is there, and this text.
func (m maybe) is(text string) bool { return m.there && m.text == text }

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// try does something that may fail, and returns why it did.
func (r *run) try(do func()) error {
	if r.err != nil {
		return r.err
	}
	do()
	err := r.err
	r.err = nil
	return err
}

// at is what is at a key, if that has the kind; nil: nothing is there.
func (r *run) at(key string, k kind) *item {
	it := r.keys.items[key]
	if r.err != nil || it == nil {
		return nil
	}
	if it.kind != k {
		r.err = errWrongType
		return nil
	}
	r.keys.touch(it)
	return it
}

// peek is at, but a key of another kind is like none. wrong: it is one.
func (r *run) peek(key string, k kind) (it *item, wrong bool) {
	it = r.keys.items[key]
	if it == nil || r.err != nil {
		return nil, false
	}
	if it.kind != k {
		return nil, true
	}
	r.keys.touch(it)
	return it, false
}

// writes reports whether a command may write.
func (r *run) writes() bool {
	if r.err != nil {
		return false
	}
	r.wrote = true
	if r.skip--; r.skip == 0 {
		return false
	}
	return true
}

// fits reports whether there is memory for what takes some. Redis asks before it looks at the key, and refuses only what is the first write of
// a script.
func (r *run) fits() bool {
	if r.err == nil && !r.wrote && !r.keys.makeRoom(0, nil) {
		r.err = errFull
	}
	return r.err == nil
}

// grows reports whether a command may write that takes memory.
func (r *run) grows() bool { return r.fits() && r.writes() }

// make is at, and makes what is not there.
func (r *run) make(key string, k kind) *item {
	it := r.at(key, k)
	if it == nil && r.err == nil {
		it = &item{key: key, kind: k}
		r.keys.put(it)
	}
	return it
}

func (r *run) exists(keys ...string) (n int64) {
	for _, key := range keys {
		if r.keys.items[key] != nil && r.err == nil {
			n++
		}
	}
	return n
}

func (r *run) del(keys ...string) (n int64) {
	if !r.writes() {
		return 0
	}
	for _, key := range keys {
		if it := r.keys.items[key]; it != nil {
			r.keys.remove(it)
			n++
		}
	}
	return n
}

// pttl is -2 if there is no such key, and -1 if it does not expire.
func (r *run) pttl(key string) int64 {
	it := r.keys.items[key]
	switch {
	case r.err != nil:
		return 0
	case it == nil:
		return -2
	case it.ends == 0:
		return -1
	}
	return it.ends - r.now
}

func (r *run) pexpire(key string, ms int64) int64 { return r.pexpireat(key, r.now+ms) }

func (r *run) pexpireat(key string, at int64) int64 {
	it := r.keys.items[key]
	if !r.writes() || it == nil {
		return 0
	}
	if at <= r.now {
		r.keys.remove(it)
	} else {
		r.keys.setEnd(it, at+r.later)
	}
	return 1
}

func (r *run) get(key string) (string, bool) {
	if it := r.at(key, str); it != nil {
		return it.text, true
	}
	return "", false
}

// put is SET, of something that does not give way to others. ms 0: it does not expire.
func (r *run) put(key, text string, ms int64) {
	if r.grows() {
		r.store(&item{key: key, text: text}, ms)
	}
}

// cache is SET of a value, which gives way to others, and may be refused.
func (r *run) cache(key, text string, ms int64) {
	if r.fits() && ms <= 0 {
		r.err = errExpire
	}
	it := &item{key: key, text: text, gives: true}
	was := r.keys.items[key]
	more := overhead + 2*int64(len(key)) + int64(len(text))
	if was != nil {
		more -= was.size
	}
	if r.err == nil && !r.keys.makeRoom(max(more, 0), was) {
		r.err = errFull
	}
	if r.writes() {
		r.store(it, ms)
	}
}

func (r *run) store(it *item, ms int64) {
	if was := r.keys.items[it.key]; was != nil {
		r.keys.remove(was)
	}
	r.keys.put(it)
	if ms != 0 {
		r.keys.setEnd(it, r.now+ms+r.later)
	}
}

// slice is GETRANGE, from and to the bytes at these places.
func (r *run) slice(key string, from, to int64) string {
	text, _ := r.get(key)
	return between(text, from, to)
}

// between is a part of a text as GETRANGE has it: places below 0 are from its end, and what is before its begin is that.
func between(text string, from, to int64) string {
	if from < 0 && to < 0 && from > to {
		return ""
	}
	from, to = places(from, to, int64(len(text)))
	if to = max(to, 0); from > to || text == "" {
		return ""
	}
	return text[from : to+1]
}

// places are what a range means in something of that size.
func places(from, to, size int64) (first, last int64) {
	if from < 0 {
		from = max(from+size, 0)
	}
	if to < 0 {
		to += size
	}
	return from, min(to, size-1)
}

// overwrite is SETRANGE, within what is there.
func (r *run) overwrite(key string, at int64, part string) {
	if !r.grows() {
		return
	}
	if it := r.at(key, str); it != nil {
		it.text = it.text[:at] + part + it.text[at+int64(len(part)):]
	}
}

func (r *run) publish(channel, message string) int64 {
	if r.err != nil || r.mute {
		return 0
	}
	return r.engine.publish(channel, message)
}
