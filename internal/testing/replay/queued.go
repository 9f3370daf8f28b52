package replay

import (
	"crypto/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

// Queued is a lock that a queue in Redis hands out, with what the models of such locks have in common.
type Queued struct {
	Verdict
	T     *testing.T
	Redis *redis.Client
	Calls queue.Calls
	Lost  bool // requests of callers may come late

	edit   Edit
	tokens map[string]string // of the callers, by their number in the model
	inbox  string            // where those of the callers begin
	heard  *redis.PubSub
	mail   map[string]int // messages about grants that each caller has not taken, by its inbox
}

// NewQueued returns such a lock. Runs whose states name somebody gone have late copies.
func NewQueued(t *testing.T, rdb *redis.Client, calls queue.Calls, run []Step, edit Edit) *Queued {
	t.Helper()
	q := &Queued{
		T: t, Redis: rdb, Calls: calls, edit: edit, tokens: make(map[string]string), inbox: rand.Text(), mail: make(map[string]int),
	}
	for _, step := range run {
		q.Lost = q.Lost || (step.Do[0] == "release" || step.Do[0] == "leave") && step.State["gone"] != "0"
	}
	q.heard = rdb.PSubscribe(t.Context(), q.inbox+":*")
	t.Cleanup(func() { _ = q.heard.Close() })
	if _, err := q.heard.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}

// Token returns the token of a caller.
func (q *Queued) Token(caller string) string {
	if q.tokens[caller] == "" {
		q.tokens[caller] = rand.Text()
	}
	return q.tokens[caller]
}

// Caller is whose token that is; 255: nobody's.
func (q *Queued) Caller(token string) string {
	for caller, t := range q.tokens {
		if t == token {
			return caller
		}
	}
	return "255"
}

// Run runs a script.
func (q *Queued) Run(call script.Call) *redis.Cmd {
	call.Script = q.edit(call.Script)
	cmd := call.Run(q.T.Context(), q.Redis)
	if cmd.Err() != nil {
		q.Wrong("Redis: %v", cmd.Err())
	}
	return cmd
}

// Ask asks for the lock as the argument says, and compares the answer; empty: nobody has it.
func (q *Queued) Ask(caller string, as any, want string) {
	cmd := q.Run(q.Calls.Asking(q.Token(caller), as, time.Hour, time.Hour, queue.Unlimited, q.inbox+":"+caller, 0))
	if _, granted := cmd.Val().(int64); want != "" && Bit(granted) != want {
		q.Wrong("acquire.lua answers %v", cmd.Val())
	}
}

// Release gives up what the caller has, and compares the answer; empty: nobody has it.
func (q *Queued) Release(caller string, want string) {
	if n, err := q.Run(q.Calls.Releasing(q.Token(caller), 0, q.Lost)).Int(); err != nil || want != "" && strconv.Itoa(n) != want {
		q.Wrong("release.lua answers %d: %v", n, err)
	}
}

// Hear waits until the message of a grant reaches the caller.
func (q *Queued) Hear(caller string) {
	inbox := q.inbox + ":" + caller
	for q.mail[inbox] == 0 {
		m, err := q.heard.ReceiveTimeout(q.T.Context(), 20*time.Second)
		if err != nil {
			q.Wrong("nobody got the message of the grant: %v", err)
			return
		}
		if m, ok := m.(*redis.Message); ok && !strings.HasSuffix(m.Payload, q.Token(caller)) {
			q.mail[m.Channel]++
		}
	}
	q.mail[inbox]--
}

// Score sets a member's score, if it is there.
func (q *Queued) Score(key, caller string, score float64) {
	if err := q.Redis.ZAddXX(q.T.Context(), key, redis.Z{Score: score, Member: q.Token(caller)}).Err(); err != nil {
		q.T.Fatal(err)
	}
}

// Field is a field of the lock; empty: it is not there.
func (q *Queued) Field(name string) string {
	text, _ := q.Redis.HGet(q.T.Context(), q.Calls.Keys[0], name).Result() // absent: empty
	return text
}

// Callers returns the callers in a sorted set, as bits.
func (q *Queued) Callers(key string) string {
	bits := 0
	for _, token := range q.Redis.ZRange(q.T.Context(), key, 0, -1).Val() {
		n, _ := strconv.Atoi(q.Caller(token))
		bits |= 1 << n
	}
	return strconv.Itoa(bits)
}

// Count is how many are in a sorted set.
func (q *Queued) Count(key string) string {
	return strconv.FormatInt(q.Redis.ZCard(q.T.Context(), key).Val(), 10)
}
