package memory

import (
	"strconv"
	"strings"
)

// What the scripts of internal/cache/protocol share: lua/prelude.lua, lua/until.lua and lua/written.lua, where the keys are described.

const slots = 5 // that a key's values and leases have: one without a version, and four

// writing is the generation in messages about the end of an update.
const writing = "writing"

// leaseOf are the fields of a lease; a key of another kind has none.
func (r *run) leaseOf(key string) lease { return r.fields(key) }

type lease []pair

func (l lease) get(field string) maybe {
	for _, p := range l {
		if p.field == field {
			return maybe{p.value, true}
		}
	}
	return maybe{}
}

// inboxes are the addresses that wait for it.
func (l lease) inboxes() (all []string) {
	for _, p := range l {
		if inbox, is := strings.CutPrefix(p.field, "inbox:"); is {
			all = append(all, inbox)
		}
	}
	return all
}

// wake tells those that wait.
func (r *run) wake(key string, inboxes []string, what, generation, more string) {
	for _, inbox := range inboxes {
		r.publish(inbox, strconv.Itoa(len(key))+":"+key+what+generation+more)
	}
}

// forget removes the values and leases of all version slots, except the value at the key kept, and returns how many there were. No channel:
// local tiers are not told.
func (r *run) forget(keys []string, channel, notice, kept string) int64 {
	leases, values := keys[len(keys)-2*slots:len(keys)-slots], keys[len(keys)-slots:]
	type end struct {
		key     string
		inboxes []string
		of      string
	}
	var ended []end
	for _, key := range leases {
		l := r.leaseOf(key)
		if generation := l.get("generation"); generation.there {
			ended = append(ended, end{key, l.inboxes(), generation.text})
		}
	}
	gone := make([]string, 0, 2*slots)
	for _, key := range append(append(gone, values...), leases...) {
		if key != kept {
			gone = append(gone, key)
		}
	}
	removed := r.del(gone...)
	for _, e := range ended {
		r.wake(e.key, e.inboxes, "g", e.of, "")
	}
	if channel != "" {
		r.publish(channel, notice)
	}
	return removed
}

// wakeReaders tells those that wait for the end of an update.
func (r *run) wakeReaders(keys, inboxes []string) {
	r.wake(keys[len(keys)-2*slots], inboxes, "g", writing, "")
}

// intent is what is known of the writers of a key.
type intent struct {
	left    int64 // for how many ms it stands
	inboxes []string
	writers int
	holder  string // of the writer that is believed to be alive for longest
}

func (r *run) intentOf(key string) (in intent) {
	all := r.fields(key)
	last := ""
	for _, p := range all {
		before := in.left
		if deadline, _, is := twoNumbers(p.value); is {
			in.left = max(in.left, deadline-r.now)
		}
		if inbox, is := strings.CutPrefix(p.field, "inbox:"); is {
			in.inboxes = append(in.inboxes, inbox)
		}
		if token, is := strings.CutPrefix(p.field, "writer:"); is {
			in.writers++
			if in.left > before {
				last = token
			}
		}
	}
	in.holder = lease(all).get("holder:" + last).text
	return in
}

// twoNumbers reads digits, a space, and digits.
func twoNumbers(text string) (a, b int64, are bool) {
	first, second, _ := strings.Cut(text, " ")
	if !digits(first) || !digits(second) {
		return 0, 0, false
	}
	return number(first), number(second), true
}

func digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// dropExpired forgets the writers whose intents have expired.
func (r *run) dropExpired(key string) {
	for _, p := range append([]pair(nil), r.fields(key)...) {
		if deadline, _, is := twoNumbers(p.value); is && deadline < r.now {
			r.hdel(key, p.field, "holder:"+p.field[min(len("holder:"), len(p.field)):])
		}
	}
}

// setIntent has a writer's intent stand for that many ms. more is for a new one.
func (r *run) setIntent(key, token, ms string, more ...string) error {
	stands := itoa(r.now+number(ms)) + " " + ms
	return r.try(func() { r.hset(key, append([]string{"writer:" + token, stands}, more...)...) })
}

// holding says since when somebody writes or loads, and on which instance.
func (r *run) holding(instance string) string { return itoa(r.now) + " " + instance }

// extendTTL has a key last for that many ms at least.
func (r *run) extendTTL(key string, ms int64) {
	if r.pttl(key) < ms {
		r.pexpire(key, ms)
	}
}

// limitOf returns for how many ms what is stored now may last; 0: no intent stands. over: one has expired.
func (r *run) limitOf(untils string) (limit int64, over bool) {
	first, there := r.first(untils)
	if there && first.score > r.now {
		return first.score - r.now, false
	}
	return 0, there
}

// clearExpired removes what there is of the key if an intent has expired.
func (r *run) clearExpired(keys []string, untils string) (limit int64, over bool) {
	limit, over = r.limitOf(untils)
	if over {
		r.zremUpTo(untils, r.now)
		r.forget(keys, "", "", "")
		limit, _ = r.limitOf(untils)
	}
	return limit, over
}

// within is a TTL as far as the limit lets it.
func within(ms, limit int64) int64 {
	if limit > 0 {
		return min(ms, limit)
	}
	return ms
}

// untilField is what a lease has more if intents stand on its key.
func untilField(limit int64) []string {
	if limit > 0 {
		return []string{"until", "1"}
	}
	return nil
}

// written is what goes between the head and the tail of an entry. ends: with an intent.
func written(ms int64, ends bool) string {
	var b [7]byte
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
		b[6] += b[i]
	}
	if ends {
		b[6] += endsMark
	}
	return string(b[:])
}

const endsMark = 85

// stored stores a value. It returns "stored", or why Redis would have refused it.
func (r *run) stored(key, entry string, ms int64) string {
	if err := r.try(func() { r.cache(key, entry, ms) }); err != nil {
		return err.Error()
	}
	return "stored"
}
