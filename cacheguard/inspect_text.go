package cacheguard

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/watch/observe"
)

// String returns the Inspection for people, one line per fact.
func (i Inspection) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s: %s", i.title(), i.State)
	switch i.State {
	case EntryMissing:
	case EntryDamaged:
		line("  %s, %d bytes", i.Damage, i.Size)
	default:
		line("  stored %s ago, fresh for %s, in Redis for %s", shown(i.Age), shown(i.FreshFor), shown(i.KeptFor))
		line("  %d bytes, %s, loaded in %s", i.Size, i.Kind, shown(i.LoadTook))
	}
	for n, tag := range i.Tags {
		if n < len(i.TagVersions) {
			line("  tag %q, version %s", tag, onOneLine(i.TagVersions[n]))
		} else {
			line("  tag %q", tag)
		}
	}
	if i.Load != nil {
		line("  loaded %s; %s", i.Load, observe.Count(i.Waiting, "other instance waits", "other instances wait"))
	}
	for _, w := range i.Writers {
		line("  updated %s; %s", w, observe.Count(i.Blocked, "instance waits", "instances wait"))
	}
	for _, intent := range i.Intents {
		line("  an intent stands, of a transaction %s", intent)
	}
	if i.Failure != nil {
		failed := "  " + observe.Count(i.Failure.InARow, "load failed", "loads in a row failed")
		if i.Failure.Message != "" {
			failed += fmt.Sprintf(", the error is remembered for %s: %q", shown(i.Failure.Left), i.Failure.Message)
		}
		line("%s", failed)
	}
	for _, of := range i.Versions {
		b.WriteString(of.String())
	}
	return b.String() + i.Here.String()
}

// title names what is inspected: a version stands below its key.
func (i Inspection) title() string {
	switch {
	case i.Key != "" && len(i.Versions) > 0:
		return strconv.Quote(i.Key) + " without a version"
	case i.Key != "":
		return strconv.Quote(i.Key)
	case i.Version != 0:
		return "version " + strconv.Itoa(i.Version)
	}
	return "a version"
}

// String says by whom, since when and until when.
func (h Holder) String() string {
	name := onOneLine(h.Instance)
	if name == "" {
		name = "an instance that is not known"
	}
	return fmt.Sprintf("by %s for %s, believed to be alive for another %s", name, shown(h.For), shown(h.Left))
}

// String says what is true of the key here, one line each.
func (h Here) String() string {
	var b strings.Builder
	for _, what := range []struct {
		is   bool
		text string
	}{
		{h.InTier, "in the local tier"},
		{h.Loads > 0, observe.Count(h.Loads, "load or wait", "loads or waits") + " under way, " + observe.Count(h.Callers, "caller", "callers")},
		{h.Pending, "an invalidation is still to be sent"},
		{h.Bypassed, "the cache is bypassed"},
		{h.Cut, "Redis does not answer"},
	} {
		if what.is {
			b.WriteString("  here: " + what.text + "\n")
		}
	}
	return b.String()
}

// onOneLine escapes what would look like another line, or what a terminal might obey: Redis has what somebody wrote
// there.
func onOneLine(s string) string {
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}

func shown(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
