package memory

import "strings"

// The scripts of cas, segment, cdc and of the rest of internal/redis.

// casVerdict is verdict in cas/lua/prelude.lua; open: the write must still be done.
func casVerdict(r *run, keys, args []string) (verdict int64, open bool) {
	old, token, repeated := args[0], args[1], args[2] == "1"
	current := r.slice(keys[0], 0, int64(len(token))-1)
	if current == token || (repeated || old == "") && lpos(r, []string{keys[1], token}) != nil {
		return 1, false
	}
	forgotten := repeated && r.llen(keys[1]) >= number(args[3])
	if current == old && (old != "" || !forgotten) {
		return 0, true
	}
	return -count(forgotten), false
}

func casRemember(r *run, keys, args []string) {
	r.lpush(keys[1], args[1])
	r.ltrim(keys[1], 0, number(args[3])-1)
	r.pexpire(keys[1], number(args[4]))
}

func swap(r *run, keys, args []string) any {
	verdict, open := casVerdict(r, keys, args)
	if !open {
		return verdict
	}
	r.put(keys[0], args[5], number(args[6]))
	casRemember(r, keys, args)
	return int64(1)
}

func casDelete(r *run, keys, args []string) any {
	verdict, open := casVerdict(r, keys, args)
	if !open {
		return verdict
	}
	r.del(keys[0])
	casRemember(r, keys, args)
	return int64(1)
}

func create(r *run, keys, args []string) any {
	if r.exists(keys[0]) == 1 {
		return count(r.hget(keys[0], "token").is(args[0]))
	}
	ttl, deadline := number(args[2]), int64(0)
	if ttl > 0 {
		deadline = r.now + ttl
	}
	r.hset(keys[0], "token", args[0], "left", args[1], "version", "0", "until", itoa(deadline))
	if ttl > 0 {
		r.pexpireat(keys[0], deadline)
	}
	return int64(1)
}

// receipt is what is noted of the last request.
func receipt(r *run, key string) (requested, units int64, there bool) {
	text, _ := r.get(key)
	return twoNumbers(text)
}

// change is what is left, and how often that changed.
func change(r *run, key string, units int64) {
	r.hincrby(key, "left", units)
	r.hincrby(key, "version", 1)
}

func take(r *run, keys, args []string) any {
	units, request := number(args[1]), number(args[0])
	if last, taken, there := receipt(r, keys[1]); there {
		if itoa(last) == args[0] {
			return taken
		} else if last > request {
			return int64(-2)
		}
	} else if r.exists(keys[1]) == 1 && r.err == nil {
		return refusal("ERR the key of the receipt has something else")
	}
	left := r.hget(keys[0], "left")
	if !left.there {
		return int64(-1)
	}
	if units = min(units, left.number()); units < number(args[2]) {
		units = 0
	} else {
		r.hincrby(keys[0], "left", -units)
	}
	r.put(keys[1], args[0]+" "+itoa(units), number(args[3]))
	return units
}

func undo(r *run, keys, args []string) any {
	request := number(args[0])
	last, taken, _ := receipt(r, keys[1])
	if last > request {
		return int64(0)
	}
	r.put(keys[1], itoa(request)+" 0", number(args[1]))
	if last < request || taken == 0 || r.exists(keys[0]) == 0 {
		return int64(0)
	}
	change(r, keys[0], taken)
	return taken
}

func putUnits(r *run, keys, args []string) any {
	if before, there := r.get(keys[1]); there {
		if !digits(strings.TrimPrefix(before, "-")) {
			return nil // a receipt of send
		}
		return number(before)
	}
	made, limit, result := r.exists(keys[0]) == 0, number(args[3]), int64(1)
	if made && args[2] == "" {
		result = 0
	} else if limit > 0 && r.hget(keys[0], "left").number()+number(args[0]) > limit {
		result = -1
	}
	r.put(keys[1], itoa(result), number(args[1]))
	if result != 1 {
		return result
	}
	change(r, keys[0], number(args[0]))
	if made {
		r.hset(keys[0], "until", args[2])
		if args[2] != "0" {
			r.pexpireat(keys[0], number(args[2]))
		}
	}
	return int64(1)
}

func sendUnits(r *run, keys, args []string) any {
	field := "to:" + args[0]
	if sent := r.hget(keys[0], field); sent.there {
		return number(sent.text[strings.LastIndexByte(sent.text, ' ')+1:])
	}
	units := min(r.hget(keys[0], "left").number(), number(args[2]))
	if units <= 0 || r.exists(keys[1]) == 1 {
		return int64(0)
	}
	r.put(keys[1], "", number(args[3]))
	change(r, keys[0], -units)
	r.hset(keys[0], field, args[1]+" "+itoa(units))
	return units
}

func claim(r *run, keys, args []string) any {
	if r.hget(keys[0], "fence").number() > number(args[0]) {
		return nil
	}
	r.hset(keys[0], "fence", args[0])
	return values(r.hmget(keys[0], "server", "file", "pos", "born"))
}

func place(r *run, keys, args []string) any {
	if r.hget(keys[0], "fence").number() > number(args[0]) {
		return int64(0)
	}
	r.hset(keys[0], "fence", args[0], "server", args[1], "file", args[2], "pos", args[3], "born", args[4])
	return int64(1)
}

func cacheName(r *run, keys, args []string) any {
	if r.exists(keys[0]) == 0 {
		r.put(keys[0], args[0], 0)
	}
	return get(r, keys[:1])
}

func mark(r *run, keys, args []string) any {
	r.wrote = true // it may, though memory is full
	r.hset(keys[0], "at", "0")
	r.pexpire(keys[0], number(args[0]))
	return int64(1)
}

func echo(r *run, keys, args []string) any {
	r.del(keys[0])
	return r.publish(args[0], args[1])
}
