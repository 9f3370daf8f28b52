package rwlock

import (
	"testing"

	"github.com/cacheguard/go/internal/testing/model"
)

func TestModelFindsEveryMistakeThatIsPutIntoTheScripts(t *testing.T) {
	t.Parallel()
	player(t).ExpectToFind(t, mistakes, rare)
}

// rare are seeds that find the mistakes which few seeds find.
var rare = map[string]uint64{
	"an upgrade has the old fence":                                  561929215115,
	"the common writer's lease is longer than the lock knows of":    978514040387,
	"the common writer's fence follows the clock alone":             674702721758,
	"the common writer's lock is forgotten with its lease":          755610142715,
	"the common writer has given up":                                400202576465,
	"a grant names no ticket":                                       1097929326846,
	"a clock that is set back stops the tickets":                    763043116976,
	"a writer gets no message that the leases before it end sooner": 792455039660,
	"a grant is shorter than its grace":                             468094615071,
	"writers are served last in, first out":                         1078146072859,
}

// mistakes are put into the scripts one at a time.
var mistakes = map[string]model.Mistake{
	"readers barge in past queued writers": {
		"(not queued or redis.call('ZCARD', writers) == 0)", "true"},
	"a writer comes in beside readers": {
		"mode == 'w' and read_until == 0", "mode == 'w'"},
	"expired readers stay": {
		"redis.call('ZREMRANGEBYSCORE', readers", "redis.call('ZCOUNT', readers"},
	"an expired writer stays": {
		"if writer and deadline <= now then", "if false then"},
	"dead waiters stay": {
		"redis.call('ZRANGEBYSCORE', alive,", "redis.call('ZRANGEBYSCORE', alive .. 'not',"},
	"a downgrade admits nobody": {
		"hold_read(token, till)\n  promote()", "hold_read(token, till)"},
	"a downgrade lets other writers in": {
		"end_writer()\n  hold_read(token, till)", "end_writer()"},
	"release does not look at the token": {
		"if writer == token then\n  end_turn()", "if writer then\n  end_turn()"},
	"release hands nothing on": {
		"promote()\nreturn had", "return had"},
	"a waiter that gives up stays in the queue": {
		"  leave(token)\nelse\n  had", "else\n  had"},
	"an upgrade does not look for other readers": {
		"redis.call('ZCARD', readers) > 1", "false"},
	"an upgrade jumps the queue": {
		"or redis.call('ZCARD', writers) > 0", ""},
	"an upgrade has the old fence": {
		"redis.call('DEL', readers)\n  read_until = 0\n  hold_write(token, till)",
		"redis.call('DEL', readers)\n  read_until = 0\n  fence = fence - 1\n  hold_write(token, till)"},
	"fences follow the clock alone": {
		"math.max(fence + 1, micros)", "micros"},
	"readers are not served after a writer": {
		"if ended or redis", "if redis"},
	"writers are served last in, first out": {
		"read_until == 0 and redis.call('ZRANGE', writers, 0, 1)", "read_until == 0 and redis.call('ZREVRANGE', writers, 0, 1)"},
	"the place does not count the time waited": {
		"came > 0 and last -", "false and last -"},
	"a clock that is set back stops the tickets": {
		"(fields[5] or 0), 1)", "(fields[4] or 0), 1)"},
	"only the first reader is admitted": {
		"redis.call('ZRANGE', waiting, 0, -1)", "redis.call('ZRANGE', waiting, 0, 0)"},
	"one message for each reader": {
		"if inbox then\n        told[inbox] = true", "if inbox then\n        wake(inbox, lock, '')\n        told[inbox] = true"},
	"a grant is shorter than its grace": {
		"lease(tonumber(grace or 0))", "lease(tonumber(grace or 0) / 2)"},
	"a clock that is set back lengthens leases": {
		"if score > limit then", "if false then"},
	"a grant names no ticket": {
		"first, ticket .. ':'", "first, '9999999999999999:'"},
	"a writer gets no message that the leases before it end sooner": {
		"    hasten()\n", ""},
	"a second revoke takes the next holder's lock": {
		"redis.call('HGET', lock, 'revoker') ~= ARGV[1]", "true"},
	"a token that has given up is not remembered": {
		"if ARGV[3] == '1' then", "if false then"},
	"a token that has given up gets the lock": {
		"if late(token) then", "if false then"},
	"keys have no TTL": {
		"if left < least then", "if false then"},
	"the common writer comes in beside readers": {
		"'EXISTS', KEYS[2], KEYS[3]", "'EXISTS', KEYS[3], KEYS[3]"},
	"the common writer has given up": {
		"not (fields[3] and now", "not (false and now"},
	"the common writer's fence follows the clock alone": {
		"if fields[1] + 0 < micros", "if true"},
	"the common writer's lease is longer than the lock knows of": {
		"and length <= fields[2] + 0", ""},
	"the common writer's lock is forgotten with its lease": {
		"fields[6] - fields[2] - 600000 >= now", "true"},
	"the common release hands nothing on": {
		"fields[10] == (fields[4] or not fields[5] and '' or nil)", "true"},
	"the common release does not look at the token": {
		"fields[8] == ARGV[1] and", "fields[8] and"},
}
