// Package hooks reports whether a go-redis client has hooks. go-redis does not tell, and silently drops hooks from the copy that
// it makes of a client for another time-out (Client.WithTimeout). If a user wants to see each request, such a copy must not send
// it. docs/design/cache.md has the ways that were looked at instead.
package hooks

import (
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
)

// lookAgain is how long what was found out counts: hooks may be added at any time.
const lookAgain = 50 * time.Millisecond

// Watch finds out about one client.
type Watch struct {
	client *redis.Client
	began  time.Time
	until  atomic.Int64 // what was found counts so long after began; negative: there are hooks
}

// Of returns the Watch of a client.
func Of(client *redis.Client) *Watch { return &Watch{client: client, began: time.Now()} }

// None reports whether the client has no hooks. It notices hooks that are added within 50 ms.
func (w *Watch) None() bool {
	now, until := int64(time.Since(w.began)), w.until.Load()
	if now < max(until, -until) {
		return until > 0
	}
	none := none(w.client)
	if until = now + int64(lookAgain); !none {
		until = -until
	}
	w.until.Store(until)
	return none
}

// none looks into the client. Where it finds things otherwise than it knows them, there are hooks.
func none(client *redis.Client) (none bool) {
	defer func() {
		if recover() != nil {
			none = false // reflection panics when a field is of another kind
		}
	}()
	state := reflect.ValueOf(client).Elem().FieldByName("baseClient").Elem().FieldByName("hooksMixin").FieldByName("state")
	if !state.IsValid() || state.Kind() != reflect.Pointer {
		return false
	}
	current := reflect.NewAt(state.Type().Elem(), unsafe.Pointer(state.Pointer())).MethodByName("Load").Call(nil)[0]
	hooks := current.Elem().FieldByName("slice")
	return hooks.Kind() == reflect.Slice && hooks.Len() == 0
}
