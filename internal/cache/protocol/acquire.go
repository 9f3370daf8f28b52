package protocol

import (
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

// Status says which of its answers Acquire gave.
type Status string

// The answers of Acquire.
const (
	HasValue Status = "value"   // there is a value by now
	Granted  Status = "lease"   // the caller has the lease, and loads
	Free     Status = "free"    // nobody has the lease, and the request did not want it
	Held     Status = "held"    // another load has the lease
	Writing  Status = "writing" // somebody updates the key
	Failed   Status = "failed"  // a load failed a moment ago
	Left     Status = "left"    // the load that the caller waited for is over, and stored nothing
)

// Acquired is the reply of Acquire.
type Acquired struct {
	Status     Status
	Value      []byte        // HasValue: the entry
	FreshAt    time.Time     // HasValue: until when, by the server's clock, the request's unfit entry is fresh; zero: it is another entry
	Generation string        // Granted, Held: of the lease; Writing: of the message at its end
	TakenOver  bool          // Granted: from a holder that let it expire
	Unfit      bool          // Granted: the request's unfit entry is still there, so nothing invalidated it since it was read
	Left       time.Duration // Held, Writing: until it expires; Failed: until a load may be tried again
	Registered bool          // Held, Writing: the holder will publish to the inbox
	Writes     time.Duration // Writing: since when a writer does, by the server's clock
	Writer     string        // Writing: its instance; empty: not known
	Failed     string        // Failed: the token of the load that failed
	Message    string        // Failed: the text of its error; Left: the body of the message about its end
}

// Request is what Acquire asks for.
type Request struct {
	Token string
	Take  bool   // the lease, if it is free
	Inbox string // to register; empty for none
	After string // the generation of the lease whose end the caller waited for; empty: none
	Unfit []byte // the entry that the caller has and cannot use; nil if none
	Aged  bool   // because it seems to be too old
}

// Acquire asks for the value, or for the lease to load it. ParseAcquired reads the reply.
func (k *Keyspace) Acquire(valueKey string, r Request) *script.Call {
	lease := int64(0)
	if r.Take {
		lease = k.leaseMillis()
	}
	args := []any{r.Token, lease, k.keepMillis(), r.Inbox, k.Instance, r.After}
	if r.Unfit != nil {
		aged := 0
		if r.Aged {
			aged = writtenAt + 1 // Lua counts from 1
		}
		args = append(args, r.Unfit[:min(len(r.Unfit), HeaderLen)], HeaderLen, aged)
	}
	return &script.Call{
		Script: acquireScript,
		Keys:   withAllVersionSlots(valueKey, valueKey, LeaseKey(valueKey), IntentKey(valueKey), untilKey(valueKey), errorKey(valueKey)),
		Args:   args,
	}
}

// Exists asks how many of the value, the lease and the intent are there, which costs the server a third of Acquire.
func (k *Keyspace) Exists(valueKey string) *script.Call {
	return &script.Call{Script: existsCommand, Keys: []string{valueKey, LeaseKey(valueKey), IntentKey(valueKey)}}
}

// ParseAcquired reads the reply of Acquire.
func ParseAcquired(cmd *script.Reply) (a Acquired, err error) {
	reply, err := cmd.Slice()
	if err != nil {
		return a, err
	}
	field := func(i int) string { return script.String(reply, i) }
	number := func(i int) int64 { return script.Number(reply, i) }
	switch a.Status = Status(field(0)); a.Status {
	case HasValue:
		a.Value = []byte(field(1))
		if shown := number(2); shown > 0 {
			a.FreshAt = time.UnixMilli(shown)
		}
	case Granted:
		a.Generation, a.TakenOver, a.Unfit = field(1), number(2) == 1, number(3) == 1
	case Free:
	case Left:
		a.Message = field(1)
	case Held, Writing:
		a.Generation, a.Left = field(1), script.Duration(number(2))
		a.Registered = number(3) == 1
		a.Writes, a.Writer = script.Duration(number(4)), field(5)
	case Failed:
		a.Failed, a.Message, a.Left = field(1), field(2), script.Duration(number(3))
	default:
		err = fmt.Errorf("unexpected reply %q", a.Status)
	}
	return a, err
}
