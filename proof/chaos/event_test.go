package chaos

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// Kinds of events.
const (
	got         = "got"         // a value was returned
	absent      = "absent"      // a thing was said not to exist
	failed      = "failed"      // a call with a living context returned an error that nobody caused
	invalidated = "invalidated" // what changed N was invalidated
	pending     = "pending"     // the same failed: from now on its own Guard does not serve what is older
	written     = "written"     // an Update, or a transaction (How is intent), wrote N, and has not returned
	misjudged   = "misjudged"   // an error was wrong about whether write was called, or has no name
	astray      = "astray"      // a key of a call for many had neither its own value nor an error
	asked       = "asked"       // a call asked for thousands (N), and got some (Many)
	behind      = "behind"      // a transaction read what is older than its own write
	off         = "off"         // a Guard's cache was turned off for some keys until now
	loads       = "loads"       // a loader has read N
	loaded      = "loaded"      // a loader has read a quiet key
	late        = "late"        // a call took longer than its context
	repeats     = "repeats"     // loads may have run twice: beside a Redis that was slow, or for callers of thousands whose time was over
	starved     = "starved"     // the process stood still
	done        = "done"        // an operation succeeded
	tries       = "tries"       // somebody is about to count
	adds        = "adds"        // somebody has counted
)

// event is a line of a log: what a process saw from one moment to another.
type event struct {
	Kind  string
	Guard string `json:",omitempty"` // which one of which process
	Key   string `json:",omitempty"`
	Scope string `json:",omitempty"` // of an invalidation: what it is about
	N     int64  `json:",omitempty"` // of a value, when it was read or written; of an invalidation, that of its write
	Tags  uint   `json:",omitempty"` // of the value, a bit each
	By    string `json:",omitempty"` // what made the value: put, or the way it was loaded
	How   string `json:",omitempty"` // the outcome; the error
	// Version is the program's; Stored is the one that stored the value.
	Version, Stored int `json:",omitempty"`
	From, To        int64
	Many            int   `json:",omitempty"` // how many others the same call had, of thousands
	Deadline        int64 `json:",omitempty"`
}

const tags = 6

func tagOf(i int) string { return "t" + string(rune('0'+i)) }

// scopes are what an invalidation can be about that concerns the value.
func (e event) scopes() []string {
	if e.Kind == absent {
		return []string{"birth:" + e.Key}
	}
	all := []string{"all", "key:" + e.Key}
	if kind, _, named := strings.Cut(e.Key, ":"); named {
		all = append(all, "kind:"+kind)
	}
	for i := range tags {
		if e.Tags&(1<<i) != 0 {
			all = append(all, "tag:"+tagOf(i))
		}
	}
	return all
}

// isView reports whether it is about a value that is made of another.
func (e event) isView() bool { return strings.HasPrefix(e.Key, "view:") }

// process is the one that the Guard is in.
func (e event) process() string {
	process, _, _ := strings.Cut(e.Guard, ".")
	return process
}

// span is from one moment to another.
type span struct{ from, to int64 }

func (s span) meets(from, to int64) bool { return s.from <= to && from <= s.to }

func now() int64 { return time.Now().UnixNano() }

// readLog reads what a process has done. The last line of one that was killed may be half.
func readLog(t *testing.T, path string) (all []event) {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			all = append(all, e)
		}
	}
	return all
}
