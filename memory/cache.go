package memory

import (
	"math"
	"strconv"
	"strings"
)

// The scripts of internal/cache/protocol about values and leases.

// asked is one run of acquire.
type asked struct {
	*run
	keys, args []string
	usable     bool
	limit      int64
}

func acquire(r *run, keys, args []string) any {
	there := r.exists(keys[:4]...)
	if there == 0 && args[1] == "0" {
		return []any{"free"}
	}
	a := &asked{run: r, keys: keys, args: args}
	value, wrong := r.peek(keys[0], str)
	if a.usable = value != nil; a.usable {
		if reply := a.fits(value.text); reply != nil {
			return reply
		}
	}
	if value != nil || wrong {
		there--
	}
	if there == 0 {
		return a.take(maybe{}, false)
	}
	h := a.held()
	if there == 1 && h.stands && h.token.there && h.token.text != args[0] && !h.tells(args[5]) {
		return a.wait(h)
	}
	return a.rest(h)
}

// fits answers with a value that the caller can use.
func (a *asked) fits(value string) any {
	if len(a.args) < 7 {
		return []any{"value", value, int64(0)}
	}
	if between(value, 0, number(a.args[7])-1) != a.args[6] {
		return []any{"value", value, int64(0)}
	}
	at := number(a.args[8])
	if at <= 0 || int64(len(value)) <= at+11 {
		return nil
	}
	of := func(from, n int64) (number int64) {
		for _, b := range []byte(value[from : from+n]) {
			number = number<<8 | int64(b)
		}
		return number
	}
	if a.now-of(at-1, 6) < of(at+6, 5) {
		return []any{"value", value, a.now}
	}
	return nil
}

// leased is what a lease says.
type leased struct {
	token, generation, failed, error, message maybe
	left                                      int64
	stands                                    bool
}

// tells reports whether it has the message about the end of the generation.
func (h leased) tells(generation string) bool {
	return generation != "" && strings.HasPrefix(h.message.text[min(1, len(h.message.text)):], generation)
}

func (a *asked) held() (h leased) {
	l := a.leaseOf(a.keys[1])
	h = leased{token: l.get("token"), generation: l.get("generation"), failed: l.get("failed"), error: l.get("error"), message: l.get("message")}
	h.left = l.get("deadline").number() - a.now
	h.stands = h.left > 0 && h.left <= l.get("length").number()
	return h
}

func (a *asked) wait(h leased) any {
	return []any{"held", h.generation.text, h.left, a.register(a.keys[1])}
}

// rest is acquire.lua behind acquire_common.lua.
func (a *asked) rest(h leased) any {
	var over bool
	if a.limit, over = a.clearExpired(a.keys, a.keys[3]); over {
		h, a.usable = leased{}, false
	}
	if h.tells(a.args[5]) {
		return []any{"left", h.message.text}
	}
	if a.exists(a.keys[2]) == 1 {
		if in := a.intentOf(a.keys[2]); in.left > 0 {
			since, instance, is := strings.Cut(in.holder, " ")
			if !is || !digits(since) {
				since, instance = itoa(a.now), ""
			}
			return []any{"writing", writing, in.left, a.register(a.keys[2]), a.now - number(since), instance}
		}
		a.del(a.keys[2])
	}
	if _, wrong := a.peek(a.keys[1], hashes); wrong {
		a.del(a.keys[1])
	}
	switch {
	case h.token.is(a.args[0]):
		return []any{"lease", h.generation.text, int64(0), count(a.usable)}
	case h.stands && h.token.there:
		return a.wait(h)
	case h.stands:
		text := h.error
		if it, _ := a.peek(a.keys[4], str); it != nil {
			text = maybe{it.text, true}
		}
		if text.there {
			return []any{"failed", h.failed.text, text.text, h.left}
		}
	}
	return a.take(h.generation, h.token.there)
}

// take takes the lease, which is free, if the caller wants it.
func (a *asked) take(generation maybe, dead bool) any {
	if a.args[1] == "0" {
		return []any{"free"}
	}
	if !generation.there {
		generation.text = a.args[0] + itoa(a.micros)
	}
	fields := []string{
		"token", a.args[0], "deadline", itoa(a.now + number(a.args[1])), "length", a.args[1], "generation", generation.text,
		"holder", a.holding(a.args[4]),
	}
	a.hset(a.keys[1], append(fields, untilField(a.limit)...)...)
	a.pexpire(a.keys[1], within(number(a.args[2]), a.limit))
	return []any{"lease", generation.text, count(dead), count(a.usable)}
}

// register has the holder, or the writer, tell the caller's inbox of its end, and returns 1 if it will.
func (a *asked) register(key string) int64 {
	field := "polled"
	if a.args[3] != "" {
		field = "inbox:" + a.args[3]
	}
	err := a.try(func() { a.hset(key, field, "1") })
	return count(a.args[3] != "" && err == nil)
}

func fill(r *run, keys, args []string) any {
	generation, ttl := args[0], number(args[1])
	l := r.leaseOf(keys[1])
	inboxes, own := l.inboxes(), l.get("generation")
	bounded := l.get("until").there
	var limit int64
	var over bool
	if bounded && own.is(generation) {
		limit, over = r.limitOf(keys[2])
	}
	if !own.is(generation) || over || bounded && limit == 0 {
		return r.refused(keys, args, l)
	}
	entry := ""
	if args[3] != "" {
		entry = args[2] + written(r.now, limit > 0) + args[3]
	}
	status := "kept"
	if ttl > 0 {
		status = r.stored(keys[0], entry, within(ttl, limit))
	}
	if status != "stored" {
		r.del(keys[0])
	}
	polled := l.get("polled").there
	r.del(keys[1])
	what := "p"
	if status == "stored" {
		what = "g"
	}
	if entry != "" && int64(len(entry)) <= number(args[6]) {
		if what = "k"; status == "stored" {
			what = "v"
		}
	} else {
		entry = ""
	}
	if (polled || len(inboxes) > 0) && status != "stored" {
		_ = r.try(func() { // who waits asks again
			r.hset(keys[1], "message", what+generation+entry)
			r.pexpire(keys[1], within(number(args[8]), limit))
		})
	}
	r.wake(keys[1], inboxes, what, generation, entry)
	return status
}

// refused is a fill whose generation is over.
func (r *run) refused(keys, args []string, l lease) any {
	offset, id := number(args[5]), args[4]
	if it, _ := r.peek(keys[0], str); number(args[1]) > 0 && it != nil && between(it.text, offset, offset+int64(len(id))-1) == id {
		return "stored"
	}
	if l.get("token").is(args[7]) {
		inboxes, generation := l.inboxes(), l.get("generation").text
		r.del(keys[1])
		r.wake(keys[1], inboxes, "g", generation, "")
	}
	return "refused"
}

func fail(r *run, keys, args []string) any {
	l := append(lease(nil), r.leaseOf(keys[0])...)
	if !l.get("token").is(args[0]) {
		return int64(0)
	}
	failures := l.get("failures").number()
	jitter := float(args[4])
	delay := int64(math.Ceil(min(float(args[3]), float(args[2])*math.Pow(2, float64(failures))) * jitter))
	if l.get("polled").there {
		delay = max(delay, number(args[5]))
	}
	r.hdel(keys[0], "token", "error", "polled")
	for _, inbox := range l.inboxes() {
		r.hdel(keys[0], "inbox:"+inbox)
	}
	err := r.try(func() {
		r.hset(keys[0], "deadline", itoa(r.now+delay), "length", itoa(delay), "failed", args[0], "failures", itoa(min(failures+1, 30)))
	})
	if err != nil {
		r.del(keys[0])
	} else if delay > 0 {
		_ = r.try(func() { r.put(keys[1], args[1], delay) }) // without its text the failure is forgotten
	}
	r.wake(keys[0], l.inboxes(), "f", l.get("generation").text, args[1])
	return int64(1)
}

func release(r *run, keys, args []string) any {
	l := r.leaseOf(keys[0])
	if !l.get("token").is(args[0]) {
		return int64(0)
	}
	inboxes, generation := l.inboxes(), l.get("generation").text
	r.del(keys[0])
	r.wake(keys[0], inboxes, "g", generation, "")
	return int64(1)
}

func renew(r *run, keys, args []string) any {
	l, keep := r.hmget(keys[0], "token", "until"), number(args[2])
	if !l[0].is(args[0]) {
		return int64(0)
	}
	if l[1].there {
		limit, over := r.limitOf(keys[1])
		if over {
			return int64(0)
		}
		keep = within(keep, limit)
	}
	r.hdel(keys[0], "")
	r.hset(keys[0], "deadline", itoa(r.now+number(args[1])), "length", args[1])
	r.pexpire(keys[0], keep)
	return int64(1)
}

func invalidate(r *run, keys, args []string) any { return r.forget(keys, args[0], args[1], "") }

func inspect(r *run, keys, args []string) any {
	var value any = ""
	size := int64(0)
	if it, wrong := r.peek(keys[0], str); it != nil {
		value, size = between(it.text, 0, number(args[0])-1), int64(len(it.text))
	} else if wrong {
		size = -1
	}
	left := r.pttl(keys[0])
	if left == -2 {
		value = nil
	}
	text, there := r.get(keys[4])
	untils := []any{}
	if it, _ := r.peek(keys[3], sorted); it != nil {
		for _, s := range it.set.all[:min(len(it.set.all), 100)] {
			untils = append(untils, s.member, itoa(s.score))
		}
	}
	return []any{r.now, left, value, size, flat(r.fields(keys[1])), flat(r.fields(keys[2])), optional(maybe{text, there}), untils}
}

func dropLarge(r *run, keys, args []string) any {
	at := number(args[0])
	if it, _ := r.peek(keys[0], str); it != nil && between(it.text, at, at) != "" {
		return r.del(keys[0])
	}
	return int64(0)
}

func float(text string) float64 {
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

func say(r *run, _, args []string) any { return r.publish(args[0], args[1]) }

func now(r *run, _, _ []string) any { return r.now }
