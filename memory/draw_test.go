package memory

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// draw draws calls at random: the arguments are few, so that they meet, and some are what earlier calls have returned.
type draw struct {
	*rand.Rand
	b           *both
	slotOf      int      // that most calls are about
	taken       bool     // a lease, just now
	stored      bool     // a value, just now
	lease       []string // the value, token and generation of the last that was taken
	update      []string // the writer, slot and generation of the last that may store
	place       []string // the token and ticket of the last that queued
	generations []string
	holders     []string // who got something lately
	fences      []string
	tickets     []string
}

func (d *draw) one(of ...string) string { return of[d.IntN(len(of))] }

func (d *draw) ms(of ...int64) string { return itoa(of[d.IntN(len(of))]) }

// token is anybody, or, more often, who got something lately.
func (d *draw) token() string {
	if n := len(d.holders); n > 0 && d.IntN(2) == 0 {
		return d.holders[max(0, n-1-d.IntN(2))]
	}
	return "t" + strconv.Itoa(d.IntN(4))
}

func (d *draw) flag() string { return d.one("0", "0", "1") }

// known is one of those that were returned lately, or none of them.
func (d *draw) known(of []string) string {
	if len(of) == 0 || d.IntN(6) == 0 {
		return "1"
	}
	return of[max(0, len(of)-1-d.IntN(3))]
}

// learn remembers what a call has returned.
func (d *draw) learn(c call, reply any) {
	if strings.HasSuffix(c.name, "acquire") || c.name == "lock_update" || c.name == "mutex/lock" {
		switch parts, are := reply.([]any); {
		case !are, parts[0] == "lease", parts[0] == int64(1):
			d.holders = append(d.holders, c.args[0])
		}
	}
	parts, _ := reply.([]any)
	d.stored = d.stored || reply == "stored"
	switch generation, _ := reply.(string); {
	case c.name == "acquire" && len(parts) > 1 && parts[0] == "lease":
		d.taken = true
		d.lease = []string{c.keys[0], c.args[0], parts[1].(string)}
	case c.name == "begin_update" && generation != "":
		d.update = []string{c.args[0], c.args[5], generation}
	case len(parts) > 2 && parts[0] == "queued":
		d.place = []string{c.args[0], itoa(parts[2].(int64))}
	}
	switch reply := reply.(type) {
	case int64:
		if reply > 1e12 {
			d.fences = append(d.fences, itoa(reply))
			d.generations = append(d.generations, d.lockToken(c)+itoa(reply))
		}
	case string:
		if c.name == "begin_update" {
			d.generations = append(d.generations, reply)
		}
	case []any:
		if len(reply) > 2 && (reply[0] == "lease" || reply[0] == "held") {
			d.generations = append(d.generations, reply[1].(string))
		}
		if len(reply) > 2 && reply[0] == "queued" {
			d.tickets = append(d.tickets, itoa(reply[2].(int64)))
		}
	}
}

func (d *draw) lockToken(c call) string {
	if c.name == "lock_update" {
		return c.args[7]
	}
	return ""
}

// The keys of a cached value.
var (
	slotNames  = []string{"", ":v0", ":v1", ":v2", ":v3"}
	lockNames  = []string{"k:rw", "k:rw:readers", "k:rw:writers", "k:rw:waiting", "k:rw:alive", "k:rw:gone"}
	sharedKeys = func() (all []string) {
		for _, slot := range slotNames {
			all = append(all, "k"+slot+":lease")
		}
		for _, slot := range slotNames {
			all = append(all, "k"+slot)
		}
		return all
	}()
)

func with(all []string, first ...string) []string { return slices.Concat(first, all) }

// slot is mostly the same for a while.
func (d *draw) slot() int {
	if d.IntN(20) == 0 {
		d.slotOf = d.IntN(len(slotNames))
	}
	if d.IntN(8) == 0 {
		return d.IntN(len(slotNames))
	}
	return d.slotOf
}

// entryOf is the head, the tail, the id and its place in an entry.
func (d *draw) entryOf() (head, tail, id string) {
	id = "id" + strconv.Itoa(d.IntN(3)) + "...."
	fresh := d.one("\x00\x00\x00\x01\xf4", "\x00\x00\x00\x13\x88", "\x00\x00\x00\x00\x00")
	return "\xfbAn", fresh + "\x00\x00\x05sum:" + id + d.one("short", strings.Repeat("long ", 20)), id
}

const idPlace = "22"

// values draws calls of those who read, among a few who write.
func (d *draw) values() call {
	if stored := d.stored; stored && d.IntN(4) > 0 {
		d.stored = false
		return d.value(d.one("acquire", "acquire", "drop_large", "intend", "inspect"))
	}
	if taken := d.taken; taken && d.IntN(4) > 0 {
		d.taken = false
		return d.value(d.one("fill", "fill", "fill", "fill", "fail", "renew", "release"))
	}
	return d.value(d.one("acquire", "acquire", "acquire", "acquire", "acquire", "acquire", "fill", "fill", "fill", "fail", "fail", "release", "renew", "renew",
		"invalidate", "begin_update", "end_update", "end_update", "end_update", "intend", "renew_intend", "done", "done", "say", "time", "inspect", "drop_large", "drop_large"))
}

// updates draws calls of those who write, among a few who read.
func (d *draw) updates() call {
	return d.value(d.one("acquire", "acquire", "fill", "begin_update", "begin_update", "end_update", "end_update", "put", "put", "put", "renew_update",
		"lock_update", "lock_update", "unlock_update", "unlock_put", "unlock_put", "intend", "renew_intend", "done", "inspect", "rw"))
}

// value draws a call of a script of package protocol, or of the lock beside a value.
func (d *draw) value(name string) call {
	value := "k" + slotNames[d.slot()]
	token, slotNumber := d.token(), strconv.Itoa(1+d.slot())
	head, tail, id := d.entryOf()
	writer := "w" + strconv.Itoa(d.IntN(2))
	generation := d.known(d.generations)
	switch {
	case d.lease != nil && d.IntN(4) > 0 && (name == "fill" || name == "fail" || name == "release" || name == "renew" || name == "drop_large"):
		value, token, generation = d.lease[0], d.lease[1], d.lease[2]
	case d.update != nil && d.IntN(4) > 0 && name == "put":
		writer, slotNumber, generation = d.update[0], d.update[1], d.update[2]
	}
	lease, failure := value+":lease", value+":lease:error"
	intent := d.ms(1000, 4000, 9000)
	switch name {
	case "acquire":
		args := []string{token, d.ms(0, 1000, 3000, 3000), d.ms(2000, 63_000), d.one("", "in1", "in1", "in2"), d.one("i1", "7"), ""}
		if d.IntN(3) == 0 {
			args[5] = d.known(d.generations)
		}
		if d.IntN(2) == 0 {
			args = append(args, d.one(head, head, "odd"), "3", d.one("4", "4", "0"))
		}
		return call{name, with(sharedKeys, value, lease, "k:intent", "k:until", failure), args}
	case "fill":
		if d.IntN(6) == 0 {
			tail = ""
		}
		return call{name, []string{value, lease, "k:until", failure}, []string{
			generation, d.ms(0, 700, 20_000, 20_000, 200_000), head, tail, id, idPlace, d.ms(60, 4096), token, "5000",
		}}
	case "fail":
		return call{name, []string{lease, failure}, []string{token, d.one("no such", "down"), d.ms(100, 1000), d.one("5000", "5000", "0"), d.one("0.5", "1", "0.93721"), "50"}}
	case "release":
		return call{name, []string{lease}, []string{token}}
	case "renew":
		return call{name, []string{lease, "k:until"}, []string{token, "3000", "63000"}}
	case "invalidate":
		return call{name, sharedKeys, []string{"local", "n1"}}
	case "begin_update":
		args := []string{writer, intent, "local", "n2", d.one("i1", "7"), slotNumber}
		if d.IntN(3) > 0 {
			args = append(args, d.ms(500, 8000))
			if d.IntN(2) == 0 {
				args = append(args, "777")
			}
		}
		return call{name, with(sharedKeys, "k:intent", "k:until"), args}
	case "end_update":
		return call{name, with(sharedKeys, "k:intent", "k:until"), []string{writer, "local", "n3"}}
	case "put":
		return call{name, with(sharedKeys, "k:intent", "k:until"), []string{
			writer, "local", "n4", slotNumber, generation, d.ms(700, 20_000), head, tail, id, idPlace,
		}}
	case "renew_update":
		return call{name, []string{"k:intent"}, []string{writer, intent}}
	case "lock_update":
		args := []string{token, d.one("w", "w", "w", "r"), d.ms(1000, 3000), d.ms(0, 500, 1500), d.ms(0, 2000, 60_000), d.one("", "in1"), d.arrived()}
		return call{name, with(sharedKeys, with([]string{"k:intent", "k:until"}, lockNames...)...), append(args, writer, intent, "local", "n5", "i1", slotNumber, d.ms(0, 500, 8000))}
	case "unlock_update", "unlock_put":
		args := []string{token, d.known(d.fences), d.flag(), writer, "local", "n6", slotNumber}
		if name == "unlock_put" {
			args = append(args, d.known(d.generations), d.ms(700, 20_000), head, tail, id, idPlace, d.ms(0, 31, 800))
		}
		return call{name, with(sharedKeys, with([]string{"k:intent", "k:until"}, lockNames...)...), args}
	case "intend":
		return call{name, with(sharedKeys, "k:until"), []string{writer, intent, d.ms(0, 2000), "local", "n7", "3"}}
	case "renew_intend":
		keys := with(sharedKeys, "k:until")
		if d.IntN(3) == 0 {
			keys = keys[:1]
		}
		return call{name, keys, []string{writer, intent, "2000"}}
	case "done":
		return call{name, with(sharedKeys, "k:until"), []string{writer, "local", "n8"}}
	case "say":
		return call{name, []string{value}, []string{"local", "n9"}}
	case "time":
		return call{name, []string{value}, nil}
	case "inspect":
		return call{name, []string{value, lease, "k:intent", "k:until", failure}, []string{d.ms(1, 30, 500)}}
	case "drop_large":
		return call{name, []string{value}, []string{d.ms(45, 45, 4096)}}
	}
	return d.rw()
}

// beat is a heartbeat of one that has queued, or of anybody.
func (d *draw) beat(token string) []string {
	if d.place != nil && d.IntN(4) > 0 {
		return []string{d.place[0], d.place[1], d.ms(500, 1500)}
	}
	return []string{token, d.known(d.tickets), d.ms(500, 1500)}
}

// arrived is when a caller came, by the server's clock in µs: now, or some time ago.
func (d *draw) arrived() string {
	if d.IntN(3) > 0 {
		return "0"
	}
	return itoa(d.b.micros - d.Int64N(3_000_000))
}

// rw draws calls of the lock beside a value.
func (d *draw) rw() call {
	token, lease := d.token(), d.ms(1000, 3000, 3000, 10_000)
	name := "rw/" + d.one("acquire", "acquire", "acquire", "acquire", "heartbeat", "heartbeat", "renew", "release", "release", "release", "revoke", "inspect", "downgrade", "upgrade", "alone")
	c := call{name, lockNames, nil}
	switch name {
	case "rw/acquire":
		c.args = []string{token, d.one("w", "r"), lease, d.ms(0, 500, 1500, 4000), d.ms(0, 2000, 60_000), d.one("", "in1", "in1", "in2"), d.arrived()}
	case "rw/heartbeat":
		c.args = d.beat(token)
	case "rw/renew", "rw/downgrade", "rw/upgrade":
		c.args = []string{token, lease, d.known(d.fences)}
	case "rw/release":
		c.args = []string{token, d.known(d.fences), d.flag()}
	case "rw/revoke":
		c.args = []string{"r" + strconv.Itoa(d.IntN(3))}
	case "rw/alone":
		writes := d.IntN(2)
		c = call{"renew_alone", lockNames[1-writes : 2-writes], []string{token, lease, strconv.Itoa(writes)}}
	}
	return c
}

var permitNames = []string{"k:sem", "k:sem:holders", "k:sem:queue", "k:sem:alive", "k:sem:gone"}

// permits draws calls of a semaphore.
func (d *draw) permits() call {
	token, lease := d.token(), d.ms(1000, 3000, 3000, 10_000)
	name := "semaphore/" + d.one("acquire", "acquire", "acquire", "acquire", "heartbeat", "heartbeat", "renew", "release", "release", "revoke", "inspect", "alone")
	c := call{name, permitNames, nil}
	switch name {
	case "semaphore/acquire":
		c.args = []string{token, d.ms(1, 1, 2), lease, d.ms(0, 500, 1500, 4000), d.ms(0, 2000, 60_000), d.one("", "in1", "in1", "in2"), d.arrived()}
	case "semaphore/heartbeat":
		c.args = d.beat(token)
	case "semaphore/renew":
		c.args = []string{token, lease, d.known(d.fences)}
	case "semaphore/release":
		c.args = []string{token, d.known(d.fences), d.flag()}
	case "semaphore/revoke":
		c.args = []string{"r" + strconv.Itoa(d.IntN(3))}
	case "semaphore/alone":
		c = call{"renew_alone", permitNames[1:2], []string{token, lease, "0"}}
	}
	return c
}

var mutexNames = []string{"k:mutex", "k:mutex:queue", "k:mutex:gone"}

// mutex draws calls of a mutex: some tokens name owners.
func (d *draw) mutex() call {
	id, lease := d.token(), d.ms(1000, 3000, 3000, 10_000)
	owner := d.one(id, id, "owner1", "owner2")
	name := "mutex/" + d.one("lock", "lock", "lock", "lock", "unlock", "unlock", "park", "renew", "revoke", "inspect")
	c := call{name, mutexNames, nil}
	switch name {
	case "mutex/lock":
		c.args = []string{id, lease, d.ms(0, 500, 1500, 4000), d.ms(0, 2000, 60_000), d.one("", "in1", "in1", "in2"), d.arrived()}
		if owner != id {
			c.args = append(c.args, owner)
		}
	case "mutex/unlock":
		c.args = []string{id}
		if p := d.IntN(4); p > 0 {
			c.args = append(c.args, owner, d.flag())
			if p > 1 {
				c.args = append(c.args, d.token(), lease, d.one("", "in1"), d.flag())
			}
		}
	case "mutex/park":
		c.args = []string{id, d.ms(0, 500, 3000), d.flag()}
	case "mutex/renew":
		c.keys, c.args = mutexNames[:1], []string{id, owner, lease, d.known(d.fences)}
		if d.IntN(8) == 0 {
			c.args[3] = itoa(d.b.micros + 5_000_000)
		}
	case "mutex/revoke":
		c.keys, c.args = mutexNames[:2], []string{"tell"}
	case "mutex/inspect":
		c.keys = mutexNames[:2]
	}
	return c
}

// epochs draws calls of the scripts of package epoch.
func (d *draw) epochs() call {
	name := "epoch/" + d.one("make", "make", "make", "revoke", "intend_tag", "intend_tag", "done_tag")
	epochs := []string{d.one("e:a", "e:b"), "e:*"}
	if d.IntN(3) == 0 {
		epochs = epochs[:1]
	}
	both := slices.Clone(epochs)
	for _, key := range epochs {
		both = append(both, key+":until")
	}
	intent, lasting := "x"+strconv.Itoa(d.IntN(3)), d.ms(500, 3000, 8000)
	switch name {
	case "epoch/make":
		return call{name, both, []string{"random" + strconv.Itoa(d.IntN(1000)), d.ms(4000, 900_000)}}
	case "epoch/revoke":
		return call{name, epochs, []string{"local", "n1"}}
	case "epoch/intend_tag":
		args := []string{intent, lasting, d.ms(0, 2000)}
		if d.IntN(3) > 0 {
			args = append(args, "local", "n2")
		}
		return call{name, both, args}
	}
	return call{name, both, []string{"local", "n3", intent}}
}

// rest draws calls of what is left.
func (d *draw) rest() call {
	token, id := d.token(), "m"+strconv.Itoa(d.IntN(3))
	name := d.one("cas/swap", "cas/swap", "cas/swap", "cas/delete", "segment/create", "segment/take", "segment/take", "segment/take", "segment/undo", "segment/put",
		"segment/put", "segment/send", "cdc/claim", "cdc/place", "cdc/cache", "mark", "echo")
	segment := d.one("s0", "s1")
	request := strconv.Itoa(1 + d.IntN(9))
	switch name {
	case "cas/swap", "cas/delete":
		args := []string{d.one("", "t0", "t1", "t2", "t3"), token, d.flag(), d.ms(1, 3, 5), d.ms(1000, 60_000)}
		if name == "cas/swap" {
			args = append(args, token+" value", d.ms(0, 900, 9000))
		}
		return call{name, []string{"c", "c:recent"}, args}
	case "segment/create":
		return call{name, []string{segment}, []string{token, d.ms(5, 100), d.ms(0, 60_000)}}
	case "segment/take":
		return call{name, []string{segment, segment + ":lane"}, []string{request, d.ms(1, 3, 50), d.ms(1, 3), "600000"}}
	case "segment/undo":
		return call{name, []string{segment, segment + ":lane"}, []string{request, "600000"}}
	case "segment/put":
		until := d.one("", "0", itoa(d.b.micros/1000+d.Int64N(20_000)))
		return call{name, []string{segment, segment + ":" + id}, []string{d.ms(1, 7), d.ms(2000, 60_000), until, d.ms(0, 0, 20)}}
	case "segment/send":
		return call{name, []string{segment, segment + ":" + id}, []string{id, d.one("s0", "s1"), d.ms(1, 7, 200), d.ms(2000, 60_000)}}
	case "cdc/claim":
		return call{name, []string{"place"}, []string{request}}
	case "cdc/place":
		return call{name, []string{"place"}, []string{request, "server", "file." + request, "77", "5"}}
	case "cdc/cache":
		return call{name, []string{"name"}, []string{token}}
	case "mark":
		return call{name, []string{"c:mark"}, []string{"1000"}}
	}
	return call{name, []string{d.one("c:echo", "c")}, []string{"inbox", "0:"}}
}

// accident draws what is no script: keys are lost, or somebody has put something else there.
func (d *draw) accident(keys []string) call {
	key := keys[d.IntN(len(keys))]
	switch d.IntN(8) {
	case 0:
		return call{"SET", []string{key}, []string{"odd", "PX", "9000"}}
	case 1:
		return call{"HSET", []string{key}, []string{"odd", "1"}}
	case 2:
		return call{"ZADD", []string{key}, []string{"5", "odd"}}
	case 3:
		return call{"LPUSH", []string{key}, []string{"odd"}}
	}
	return call{"DEL", []string{key}, nil}
}

var plainKeys = []string{"a", "b", "c"}

// commands draws plain commands.
func (d *draw) commands() call {
	key, field, n := d.one(plainKeys...), d.one("f", "g", "h"), d.ms(-2, -1, 0, 1, 2, 7)
	value := d.one("", "value", "5", "another value")
	name := d.one("DEL", "EXISTS", "PTTL", "PEXPIRE", "PEXPIREAT", "GET", "GET", "MGET", "SET", "SET", "GETRANGE", "STRLEN", "HGET", "HMGET", "HGETALL", "HEXISTS", "HDEL",
		"HINCRBY", "HSET", "HSET", "HSET", "LPUSH", "LPUSH", "LPOS", "LLEN", "LTRIM", "ZADD", "ZADD", "ZADD", "ZCARD", "ZPOPMIN", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE",
		"ZREM", "ZREMRANGEBYSCORE", "ZSCORE", "TIME", "PUBLISH")
	c := call{name, []string{key}, nil}
	switch name {
	case "PEXPIRE":
		c.args = []string{d.ms(0, 1, 900, 20_000)}
	case "PEXPIREAT":
		c.args = []string{itoa(d.b.micros/1000 + d.Int64N(3000) - 500)}
	case "MGET":
		c.keys = plainKeys
	case "SET":
		c.args = append([]string{value}, [][]string{nil, {"PX", "900"}, {"PX", "0"}, {"NX", "PX", "5000"}, {"NX"}}[d.IntN(5)]...)
	case "GETRANGE", "LTRIM":
		c.args = []string{n, d.ms(-3, -1, 0, 3)}
	case "ZRANGE", "ZREVRANGE":
		c.args = append([]string{n, d.ms(-3, -1, 0, 3)}, [][]string{nil, {"WITHSCORES"}}[d.IntN(2)]...)
	case "HGET", "HEXISTS", "HDEL", "ZREM", "ZSCORE":
		c.args = []string{field}
	case "HMGET":
		c.args = []string{field, "f"}
	case "HINCRBY":
		c.args = []string{field, n}
	case "HSET":
		c.args = []string{field, value}
	case "LPUSH", "LPOS", "PUBLISH":
		c.args = []string{value}
	case "ZADD":
		c.args = []string{n, field}
	case "ZRANGEBYSCORE", "ZREMRANGEBYSCORE":
		c.args = []string{d.one("-inf", n, "("+n), d.one("+inf", "3", "(7")}
	case "TIME":
		c.keys = nil
	}
	return c
}
