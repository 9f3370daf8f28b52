// Package inspect reads what Redis has of a key, for the person on call.
package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/script"
)

// Reply is the reply of Keyspace.Inspect. Times are by the clock of the key's server.
type Reply struct {
	Now     time.Time
	Value   []byte        // the entry, or its beginning; nil: there is none
	Size    int           // of the entry; no more than len(Value) if the user may not ask
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
	For      time.Duration // since it began; 0: not known
	Left     time.Duration // until others take it for dead, if it does not renew
}

// Entry decodes the entry of the user's key. Of one that is longer than what was looked at, it has no whole payload,
// and whether that is intact is not known.
func (in *Reply) Entry(key string) (protocol.Entry, error) {
	if in.whole || len(in.Value) < protocol.InspectedLen {
		return protocol.DecodeEntry(key, in.Value)
	}
	return protocol.DecodeBeginning(key, in.Value)
}

// Parse reads the reply.
func Parse(cmd *script.Reply) (in Reply, err error) {
	reply, err := cmd.Slice()
	if err != nil {
		return in, err
	}
	if len(reply) != 8 {
		return in, fmt.Errorf("unexpected reply of %d parts", len(reply))
	}
	in.Now, in.Expires = time.UnixMilli(script.Number(reply, 0)), time.Duration(script.Number(reply, 1))*time.Millisecond
	if value, is := reply[2].(string); is {
		in.Value, in.Size = []byte(value), len(value)
	}
	if size := int(script.Number(reply, 3)); size >= in.Size {
		in.Size, in.whole = size, size == in.Size
	}
	in.readLease(script.Fields(reply[4]))
	in.readIntent(script.Fields(reply[5]))
	in.Failure = script.String(reply, 6)
	untils, _ := reply[7].([]any)
	in.readUntils(untils)
	return in, nil
}

func (in *Reply) readLease(fields map[string]string) {
	left, length := in.left(fields["deadline"] + " " + fields["length"])
	if left > length { // the clock was set back, and the scripts take the lease for free
		left = 0
	}
	in.Waiting = inboxesIn(fields)
	in.Failures, _ = strconv.Atoi(fields["failures"])
	if _, held := fields["token"]; held && left > 0 {
		h := in.holder(fields["holder"], left)
		in.Load = &h
	} else if in.Failures > 0 && !held {
		in.Retry = left
	}
}

func (in *Reply) readIntent(fields map[string]string) {
	in.Blocked = inboxesIn(fields)
	for name, value := range fields {
		token, is := strings.CutPrefix(name, "writer:")
		if left, length := in.left(value); is && left > 0 {
			in.Writers = append(in.Writers, in.holder(fields["holder:"+token], min(left, length)))
		}
	}
}

// readUntils reads members and scores. One that has expired stands no more.
func (in *Reply) readUntils(untils []any) {
	for i := 0; i+1 < len(untils); i += 2 {
		_, holder, _ := strings.Cut(fmt.Sprint(untils[i]), " ")
		ends, err := strconv.ParseInt(fmt.Sprint(untils[i+1]), 10, 64)
		if left := time.UnixMilli(ends).Sub(in.Now); err == nil && left > 0 {
			in.Intents = append(in.Intents, in.holder(holder, left))
		}
	}
}

// left is how long something stands that has a deadline and a length. If that is more than the length, it was set
// before the clock was.
func (in *Reply) left(deadlineAndLength string) (left, length time.Duration) {
	deadline, lasts, _ := strings.Cut(deadlineAndLength, " ")
	ends, err1 := strconv.ParseInt(deadline, 10, 64)
	millis, err2 := strconv.ParseInt(lasts, 10, 64)
	if err1 != nil || err2 != nil {
		return 0, 0
	}
	return max(time.UnixMilli(ends).Sub(in.Now), 0), script.Duration(millis)
}

// holder reads a field that says since when something is held, and on which instance.
func (in *Reply) holder(field string, left time.Duration) Hold {
	since, instance, _ := strings.Cut(field, " ")
	millis, err := strconv.ParseInt(since, 10, 64)
	if err != nil {
		return Hold{Left: left}
	}
	return Hold{Instance: instance, For: max(in.Now.Sub(time.UnixMilli(millis)), 0), Left: left}
}

func inboxesIn(fields map[string]string) (n int) {
	for name := range fields {
		if strings.HasPrefix(name, "inbox:") {
			n++
		}
	}
	return n
}
