package memory

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// command runs a command, which may be a script.
func (r *run) command(args []string) any {
	name := strings.ToUpper(args[0])
	c, known := plain[name]
	switch {
	case !known:
		return refusal(fmt.Sprintf("ERR unknown command '%.128s': package memory has those that cacheguard sends", args[0]))
	case len(args) < c.least:
		return refusal(fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(name)))
	}
	if r.engine.planted != nil && name != "EVAL" && name != "EVALSHA" {
		r.engine.planted(name, r)
	}
	return c.do(r, args[1:])
}

// plain are the commands that the library sends beside scripts, and those that SelfCheck tries; least is how many words each has.
var plain map[string]command

type command struct {
	least int
	do    func(r *run, args []string) any
}

func init() { //nolint:gochecknoinits // EVAL is one of them, and leads back here
	plain = map[string]command{
		"EVAL": {3, eval}, "EVALSHA": {3, evalsha},
		"HELLO": {1, hello}, "INFO": {1, info}, "WAIT": {3, func(*run, []string) any { return int64(0) }}, // there are no replicas
		"PING": {1, ping}, "TIME": {1, timeOf}, "PUBLISH": {3, func(r *run, a []string) any { return r.publish(a[0], a[1]) }},

		"DEL":       {2, func(r *run, a []string) any { return r.del(a...) }},
		"EXISTS":    {2, func(r *run, a []string) any { return r.exists(a...) }},
		"PTTL":      {2, func(r *run, a []string) any { return r.pttl(a[0]) }},
		"PEXPIRE":   {3, func(r *run, a []string) any { return r.pexpire(a[0], r.integer(a[1])) }},
		"PEXPIREAT": {3, func(r *run, a []string) any { return r.pexpireat(a[0], r.integer(a[1])) }},

		"GET": {2, get}, "MGET": {2, mget}, "SET": {3, setText},
		"GETRANGE": {4, func(r *run, a []string) any { return r.slice(a[0], r.integer(a[1]), r.integer(a[2])) }},
		"SETRANGE": {4, setrange},
		"STRLEN":   {2, func(r *run, a []string) any { text, _ := r.get(a[0]); return int64(len(text)) }},

		"HGET":    {3, func(r *run, a []string) any { return optional(r.hget(a[0], a[1])) }},
		"HMGET":   {3, func(r *run, a []string) any { return values(r.hmget(a[0], a[1:]...)) }},
		"HGETALL": {2, hgetall},
		"HEXISTS": {3, func(r *run, a []string) any { return count(r.hexists(a[0], a[1])) }},
		"HDEL":    {3, func(r *run, a []string) any { return r.hdel(a[0], a[1:]...) }},
		"HINCRBY": {4, func(r *run, a []string) any { return r.hincrby(a[0], a[1], r.integer(a[2])) }},
		"HSET":    {4, hset},

		"LPUSH": {3, func(r *run, a []string) any { return r.lpush(a[0], a[1]) }},
		"LPOS":  {3, lpos},
		"LLEN":  {2, func(r *run, a []string) any { return r.llen(a[0]) }},
		"LTRIM": {4, func(r *run, a []string) any { r.ltrim(a[0], r.integer(a[1]), r.integer(a[2])); return "OK" }},

		"ZADD":             {4, func(r *run, a []string) any { return r.zadd(a[0], r.score(a[1]), a[2]) }},
		"ZCARD":            {2, func(r *run, a []string) any { return r.zcard(a[0]) }},
		"ZPOPMIN":          {2, zpopmin},
		"ZRANGE":           {4, zrange},
		"ZRANGEBYSCORE":    {4, zrangebyscore},
		"ZREM":             {3, func(r *run, a []string) any { return r.zrem(a[0], a[1:]...) }},
		"ZREMRANGEBYSCORE": {4, zremrangebyscore},
		"ZREVRANGE":        {4, zrevrange},
		"ZSCORE":           {3, zscore},
	}
}

// integer reads an argument.
func (r *run) integer(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && r.err == nil {
		r.err = errInteger
	}
	return n
}

// score reads a score.
func (r *run) score(text string) int64 {
	switch strings.ToLower(text) {
	case "-inf":
		return math.MinInt64
	case "+inf", "inf":
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && r.err == nil {
		r.err = refusal("ERR value is not a valid float")
	}
	return n
}

// bound reads a bound of a range of scores, which begins with a parenthesis if it is no part of it.
func (r *run) bound(text string, inward int64) int64 {
	if rest, open := strings.CutPrefix(text, "("); open {
		return r.score(rest) + inward
	}
	return r.score(text)
}

func count(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func optional(m maybe) any {
	if m.there {
		return m.text
	}
	return nil
}

func values(all []maybe) any {
	reply := make([]any, len(all))
	for i, m := range all {
		reply[i] = optional(m)
	}
	return reply
}

func ping(_ *run, args []string) any { return strings.Join(append(args, "PONG")[:1], "") }

func timeOf(r *run, _ []string) any {
	return []any{itoa(r.micros / 1e6), itoa(r.micros % 1e6)}
}

// version says which Redis replies so.
const version = "7.0.15"

func hello(*run, []string) any {
	return []any{"server", "redis", "version", version, "proto", int64(2), "mode", "standalone", "role", "master"}
}

func info(r *run, _ []string) any {
	return "# Server\r\nredis_version:" + version + "\r\nmemory_version:" + version + "\r\nredis_mode:standalone\r\n" +
		"# Memory\r\nused_memory:" + itoa(r.keys.used) + "\r\nmaxmemory:" + itoa(r.keys.max) + "\r\nmaxmemory_policy:noeviction\r\n" // but of cached values
}

func get(r *run, args []string) any {
	text, there := r.get(args[0])
	return optional(maybe{text, there})
}

func mget(r *run, args []string) any {
	reply := make([]any, len(args))
	for i, key := range args {
		if it, _ := r.peek(key, str); it != nil {
			reply[i] = it.text
		}
	}
	return reply
}

// setText is SET, which has the options PX and NX.
func setText(r *run, args []string) any {
	ms, fresh := int64(0), false
	for i := 2; i < len(args); i++ {
		switch option := strings.ToUpper(args[i]); {
		case option == "NX":
			fresh = true
		case option == "PX" && i+1 < len(args):
			if i++; r.fits() && r.integer(args[i]) <= 0 && r.err == nil {
				return errExpire
			}
			ms = r.integer(args[i])
		default:
			return errSyntax
		}
	}
	if r.fits() && fresh && r.exists(args[0]) == 1 {
		return nil
	}
	r.put(args[0], args[1], ms)
	return "OK"
}

func setrange(r *run, args []string) any {
	at := r.integer(args[1])
	text, _ := r.get(args[0])
	if args[2] == "" || r.err != nil {
		return int64(len(text))
	}
	if at < 0 || at+int64(len(args[2])) > int64(len(text)) {
		return refusal("ERR package memory writes within what is there")
	}
	r.overwrite(args[0], at, args[2])
	return int64(len(text))
}

func hset(r *run, args []string) any {
	if len(args)%2 == 0 {
		return refusal("ERR wrong number of arguments for 'hset' command")
	}
	return r.hset(args[0], args[1:]...)
}

func hgetall(r *run, args []string) any {
	it := r.at(args[0], hashes)
	if it == nil {
		return []any{}
	}
	return flat(it.hash.pairs)
}

func flat(pairs []pair) []any {
	reply := make([]any, 0, 2*len(pairs))
	for _, p := range pairs {
		reply = append(reply, p.field, p.value)
	}
	return reply
}

// lpush adds the newest.
func (r *run) lpush(key, text string) int64 {
	if !r.grows() {
		return 0
	}
	it := r.make(key, listed)
	if it == nil {
		return 0
	}
	it.list = append(it.list, text)
	r.keys.weigh(it)
	return int64(len(it.list))
}

func (r *run) llen(key string) int64 {
	if it := r.at(key, listed); it != nil {
		return int64(len(it.list))
	}
	return 0
}

// ltrim keeps the places from the newest on.
func (r *run) ltrim(key string, from, to int64) {
	if !r.writes() {
		return
	}
	it := r.at(key, listed)
	if it == nil {
		return
	}
	size := int64(len(it.list))
	if from, to = places(from, to, size); from > to {
		it.list = nil
	} else if from > 0 || to < size-1 {
		it.list = append([]string(nil), it.list[size-1-to:size-from]...)
	}
	r.settle(it, len(it.list))
}

func lpos(r *run, args []string) any {
	if it := r.at(args[0], listed); it != nil {
		for i := range it.list {
			if it.list[len(it.list)-1-i] == args[1] {
				return int64(i)
			}
		}
	}
	return nil
}

func zpopmin(r *run, args []string) any {
	all := r.members(args[0])
	if len(all) == 0 {
		return []any{}
	}
	first := all[0]
	r.zrem(args[0], first.member)
	return []any{first.member, itoa(first.score)}
}

func zrange(r *run, args []string) any { return r.ranged(r.members(args[0]), args) }

func zrevrange(r *run, args []string) any {
	all := r.members(args[0])
	back := make([]scored, len(all))
	for i, s := range all {
		back[len(all)-1-i] = s
	}
	return r.ranged(back, args)
}

// ranged are those at the places that the arguments name.
func (r *run) ranged(all []scored, args []string) any {
	from, to := places(r.integer(args[1]), r.integer(args[2]), int64(len(all)))
	reply := []any{}
	for i := from; i <= to; i++ {
		reply = append(reply, all[i].member)
		if len(args) > 3 {
			reply = append(reply, itoa(all[i].score))
		}
	}
	return reply
}

func zrangebyscore(r *run, args []string) any {
	reply := []any{}
	low, high := r.bound(args[1], 1), r.bound(args[2], -1)
	for _, s := range r.members(args[0]) {
		if s.score >= low && s.score <= high {
			reply = append(reply, s.member)
		}
	}
	return reply
}

func zremrangebyscore(r *run, args []string) any {
	var names []string
	for _, name := range zrangebyscore(r, args).([]any) {
		names = append(names, name.(string))
	}
	return r.zrem(args[0], names...)
}

func zscore(r *run, args []string) any {
	score, there := r.zscore(args[0], args[1])
	return optional(maybe{itoa(score), there})
}
