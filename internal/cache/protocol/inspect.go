package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

// Inspected is the reply of Inspect. Times are by the clock of the key's server.
type Inspected struct {
	Now     time.Time
	Value   []byte        // the entry, or its beginning; nil: there is none
	Size    int           // of the entry; no more than that of Value if the user may not ask
	whole   bool          // Value is all of the entry
	Expires time.Duration // until Redis drops the value; below 0: never

	Load    *Hold // that has the lease; nil: none
	Waiting int   // processes that wait for the end of the load
	Writers []Hold
	Intents []Hold // of transactions; at most a hundred
	Blocked int    // processes that wait for the end of the update

	Failures int           // how many loads failed in a row
	Failure  string        // the text of the last one's error; empty: it does not count any more
	Retry    time.Duration // until a load may be tried again; 0: now
}

// Hold is somebody who loads, or updates.
type Hold struct {
	Instance string
	Since    time.Time     // zero: not known
	Left     time.Duration // until others take it for dead, if it does not renew
}

// Inspect looks at all that there is of a key. ParseInspected reads the reply.
func (k *Keyspace) Inspect(valueKey string) *script.Call {
	return &script.Call{Script: inspectScript, Args: []any{inspectedLen}, Keys: []string{
		valueKey, LeaseKey(valueKey), IntentKey(valueKey), untilKey(valueKey), errorKey(valueKey),
	}}
}

// inspectedLen is how much of an entry is looked at: more than what comes before any payload.
const inspectedLen = 64 << 10

// Entry decodes the entry of the user's key. Of one that is longer than what was looked at, it has no whole payload, and whether that is intact is not known.
func (in *Inspected) Entry(key string) (Entry, error) {
	if in.whole || len(in.Value) < inspectedLen {
		return DecodeEntry(key, in.Value)
	}
	head := bytes.Clone(in.Value)
	binary.BigEndian.PutUint32(head[sumAt:], checksum(key, head)) // of what there is
	return DecodeEntry(key, head)
}

// ParseInspected reads the reply of Inspect.
func ParseInspected(cmd *script.Reply) (in Inspected, err error) {
	reply, err := cmd.Slice()
	if err != nil {
		return in, err
	}
	if len(reply) != 8 {
		return in, fmt.Errorf("unexpected reply of %d parts", len(reply))
	}
	now, _ := reply[0].(int64)
	expires, _ := reply[1].(int64)
	in.Now, in.Expires = time.UnixMilli(now), time.Duration(expires)*time.Millisecond
	if value, is := reply[2].(string); is {
		in.Value, in.Size = []byte(value), len(value)
	}
	if size, _ := reply[3].(int64); size >= int64(in.Size) {
		in.Size, in.whole = int(size), size == int64(in.Size)
	}
	in.readLease(fieldsOf(reply[4]))
	in.readIntent(fieldsOf(reply[5]))
	in.Failure, _ = reply[6].(string)
	untils, _ := reply[7].([]any)
	in.readUntils(untils)
	return in, nil
}

// fieldsOf are the fields of a hash, with a client of either version of Redis' protocol.
func fieldsOf(reply any) map[string]string {
	fields := make(map[string]string)
	switch reply := reply.(type) {
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			fields[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
		}
	case map[any]any:
		for name, value := range reply {
			fields[fmt.Sprint(name)] = fmt.Sprint(value)
		}
	}
	return fields
}

func (in *Inspected) readLease(fields map[string]string) {
	left, length := in.left(fields["deadline"] + " " + fields["length"])
	if left > length { // the clock was set back, and the scripts take the lease for free
		left = 0
	}
	in.Waiting = inboxesIn(fields)
	in.Failures, _ = strconv.Atoi(fields["failures"])
	if _, held := fields["token"]; held && left > 0 {
		h := holderOf(fields["holder"])
		h.Left = left
		in.Load = &h
	} else if in.Failures > 0 && !held {
		in.Retry = left
	}
}

func (in *Inspected) readIntent(fields map[string]string) {
	in.Blocked = inboxesIn(fields)
	for name, value := range fields {
		token, is := strings.CutPrefix(name, "writer:")
		if left, length := in.left(value); is && left > 0 {
			h := holderOf(fields["holder:"+token])
			h.Left = min(left, length)
			in.Writers = append(in.Writers, h)
		}
	}
}

// readUntils reads members and scores. One that has expired stands no more.
func (in *Inspected) readUntils(untils []any) {
	for i := 0; i+1 < len(untils); i += 2 {
		_, holder, _ := strings.Cut(fmt.Sprint(untils[i]), " ")
		ends, err := strconv.ParseInt(fmt.Sprint(untils[i+1]), 10, 64)
		if left := time.UnixMilli(ends).Sub(in.Now); err == nil && left > 0 {
			h := holderOf(holder)
			h.Left = left
			in.Intents = append(in.Intents, h)
		}
	}
}

// left is how long something stands that has a deadline and a length. If that is more than the length, it was set before the
// clock was.
func (in *Inspected) left(deadlineAndLength string) (left, length time.Duration) {
	deadline, lasts, _ := strings.Cut(deadlineAndLength, " ")
	ends, err1 := strconv.ParseInt(deadline, 10, 64)
	millis, err2 := strconv.ParseInt(lasts, 10, 64)
	if err1 != nil || err2 != nil {
		return 0, 0
	}
	return max(time.UnixMilli(ends).Sub(in.Now), 0), script.Duration(millis)
}

// holderOf reads a field that says since when something is held, and on which instance.
func holderOf(field string) (h Hold) {
	since, instance, _ := strings.Cut(field, " ")
	if millis, err := strconv.ParseInt(since, 10, 64); err == nil {
		h.Since, h.Instance = time.UnixMilli(millis), instance
	}
	return h
}

func inboxesIn(fields map[string]string) (n int) {
	for name := range fields {
		if strings.HasPrefix(name, "inbox:") {
			n++
		}
	}
	return n
}
