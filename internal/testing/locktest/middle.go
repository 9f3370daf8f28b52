package locktest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// inTheMiddle has a script say its key, and wait until the clock is set back.
const inTheMiddle = `
local from = tonumber(redis.call('TIME')[1])
redis.log(redis.LOG_WARNING, 'in the middle of ' .. KEYS[1])
while tonumber(redis.call('TIME')[1]) >= from do for i = 1, 10000 do end end
`

// Middle is a server whose clock is set back by an hour in the middle of scripts. Redis 7.0 takes the time at which a script began for
// that at which keys expire, and another one for what PEXPIRE adds to.
type Middle struct {
	Redis *redis.Client

	t      *testing.T
	server *redistest.Server
	log    string
}

// StartMiddle starts one, or skips the test where that cannot be.
func StartMiddle(t *testing.T) *Middle {
	t.Helper()
	m := &Middle{t: t, log: filepath.Join(t.TempDir(), "log")}
	m.server = redistest.Start(t, "--logfile", m.log)
	m.Redis = m.server.Client(t)
	m.SetClock(0)
	if still, err := m.Redis.Eval(t.Context(), `local t = redis.call('TIME')
		for i = 1, 1000000 do end
		return redis.call('TIME')[2] == t[2] and 1 or 0`, []string{"k"}).Bool(); err != nil || still {
		t.Skip("time stands still within a script, as on Redis 7.2 and later:", err)
	}
	return m
}

// SetClock sets the clock that much ahead.
func (m *Middle) SetClock(ahead time.Duration) {
	m.t.Helper()
	if err := m.server.SetClock(ahead); errors.Is(err, errors.ErrUnsupported) {
		m.t.Skip(err)
	} else if err != nil {
		m.t.Fatal(err)
	}
}

// Pausing makes of a script's source one that waits, before what stands there in it, until Run sets the clock back.
func Pausing(source, before string) string {
	return strings.Replace(source, before, inTheMiddle+before, 1)
}

// Run runs a call whose script is Pausing, and sets the clock back in its middle. Then every key that is there has a TTL.
func (m *Middle) Run(call script.Call) {
	m.t.Helper()
	done := make(chan error, 1)
	go func() { done <- call.Run(context.Background(), m.Redis).Err() }() // owner: the test; ends with the call; joined by receiving
	awaitSoon(m.t, "the script is in the middle, where it computes until the clock is set", func() bool {
		logged, err := os.ReadFile(m.log)
		return err == nil && strings.Contains(string(logged), "in the middle of "+call.Keys[0]) || len(done) > 0
	})
	m.SetClock(-time.Hour)
	expect.ErrorIs(m.t, <-done, nil)
}

// Lasting reports whether every key that is there has a TTL.
func (m *Middle) Lasting(keys []string) bool {
	m.t.Helper()
	for _, key := range keys {
		if ttl := m.Redis.PTTL(m.t.Context(), key).Val(); ttl == -1 {
			return false
		}
	}
	return true
}

// Step is a call of a lock's in whose middle the clock is set back.
type Step struct {
	Name  string
	Call  func(queue.Calls) script.Call
	First bool // nobody has asked before, so the keys get their first TTLs
}

// KeepsWhatItHas checks that no step loses the hash of the lock, its fence included. at makes the calls of a lock whose scripts are edited, and
// ask the call by which somebody holds it. A script that sets its TTLs at once is found wrong in the first step. It is tried in a third of
// the steps, drawn anew each time, unless THOROUGH is set.
func (m *Middle) KeepsWhatItHas(at func(base string, edit func(source string) string) queue.Calls, ask func(queue.Calls) script.Call, steps []Step) {
	m.t.Helper()
	unedited := func(source string) string { return source }
	for _, step := range steps {
		for _, before := range []string{"local now, micros =", "local function whole"} { // before it asks for the time, and after that
			for _, mistake := range []string{"", "redis.call('PEXPIRE', key, whole(left))"} {
				if mistake != "" && !expect.Drawn(3) {
					continue
				}
				m.SetClock(0)
				base := "{" + step.Name + ", " + before + mistake + "}"
				held := at(base, unedited)
				if !step.First {
					call := ask(held)
					expect.ErrorIs(m.t, call.Run(m.t.Context(), m.Redis).Err(), nil)
				}
				field := func(name string) string { return m.Redis.HGet(m.t.Context(), held.Keys[0], name).Val() }
				fence := field("fence")
				m.Run(step.Call(at(base, func(source string) string {
					return Pausing(strings.Replace(source, "ttls[key] = left\n", "ttls[key] = left "+mistake+"\n", 1), before)
				})))
				kept := m.Lasting(held.Keys) && field("fence") >= fence && field("longest") != ""
				if mistake == "" {
					expect.Equal(m.t, base+" is kept", kept, true)
				} else if step.First {
					expect.Equal(m.t, "the mistake is found: "+base, kept, false)
				}
			}
		}
	}
}
