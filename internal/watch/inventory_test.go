package watch

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/watch/observe"
)

// What is counted or logged is shown, too. These tests draw from the code what there is, so that what is added to one place only fails.

// allEvents lists the events that have a line of the log.
func allEvents() []What { return slices.Sorted(maps.Keys(ofEvents)) }

func TestTheLinesAreOfTheEventsThatAGuardHas(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../cacheguard/observer.go")
	expect.ErrorIs(t, err)
	_, from, _ := strings.Cut(string(source), "EventRejected  ")
	var has []What
	for _, event := range regexp.MustCompile(`What = "(\w+)"`).FindAllStringSubmatch(from, -1) {
		has = append(has, What(event[1]))
	}
	slices.Sort(has)
	expect.Equal(t, "events", fmt.Sprint(allEvents()), fmt.Sprint(has))
}

func TestEachLastingTroubleIsShownAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		var j Journal
		j.Open(Config{Logger: logger, Pending: func() int { return 1 }, Untold: func() int { return 1 }})
		found := 0
		fields := reflect.ValueOf(&j).Elem()
		for i := range fields.NumField() {
			e := episodeIn(fields.Field(i))
			if e == nil {
				continue
			}
			name := fields.Type().Field(i).Name
			e.begin()
			time.Sleep(time.Minute)
			expect.Equal(t, name+": begun", lines(text(), `cacheguard: `+e.begun), 1)
			if e.over == "" {
				continue // it is
			}
			found++
			expect.Equal(t, name+": troubles that are shown", lasting(j.Troubles()), 1)
			e.end() // one may bring another
			expect.Equal(t, name+": over", lines(text(), `cacheguard: `+e.over), 1)
		}
		expect.Equal(t, "troubles that can be shown", found, len(j.Troubles().Last))
		f := j.Kind("product")
		for range 2 * someFailed {
			f.Loaded(errors.New("no such table"), "")
			time.Sleep(time.Second)
		}
		expect.Equal(t, "loads fail", f.Now().For > 0, true)
		before := text()
		j.Close()
		for i := range fields.NumField() {
			if e := episodeIn(fields.Field(i)); e != nil {
				e.end()
			}
		}
		time.Sleep(time.Hour)
		expect.Equal(t, "logged after Close", text(), before)
	})
}

// episodeIn is the episode that a field of a Journal is or has; nil: none.
func episodeIn(field reflect.Value) *episode {
	if field.Type() == reflect.TypeFor[episode]() {
		return (*episode)(unsafe.Pointer(field.UnsafeAddr()))
	}
	if field.Kind() == reflect.Struct {
		if in := field.FieldByName("episode"); in.IsValid() {
			return (*episode)(unsafe.Pointer(in.UnsafeAddr()))
		}
	}
	return nil
}

// lasting is how many troubles last.
func lasting(t observe.Troubles) (n int) {
	for _, d := range t.Last {
		if d > 0 {
			n++
		}
	}
	return n
}

// Somebody looks for the line at night.
func TestEachLineOfTheLogIsInTheGuideForTheNight(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/at-3am.md")
	expect.ErrorIs(t, err)
	has := func(line string) {
		if !isIn(string(guide), line) {
			t.Errorf("docs/at-3am.md has no line for %q", line)
		}
	}
	logger, text := logged()
	var j Journal
	j.Open(Config{Logger: logger, Background: func(f func()) bool { f(); return true }, Pending: func() int { return 0 }, Untold: func() int { return 0 }})
	defer j.Close()
	for _, what := range allEvents() {
		line := ofEvents[what].text
		if j.Observe(t.Context(), Event{What: what}); strings.Contains(text(), "cacheguard: "+line) {
			has(line)
		}
	}
	fields := reflect.ValueOf(&j).Elem()
	for i := range fields.NumField() {
		if e := episodeIn(fields.Field(i)); e != nil {
			if has(e.begun); e.over != "" {
				has(e.over)
			}
		}
	}
}

// isIn reports whether the guide has the line, or its first words, as code.
func isIn(guide, line string) bool {
	line, _, _ = strings.Cut(line, ",")
	words := strings.Fields(line)
	for n := len(words); n > 1; n-- {
		short := strings.TrimSuffix(strings.Join(words[:n], " "), ":")
		if strings.Contains(guide, "`"+short) || strings.Contains(guide, "`cacheguard: "+short) {
			return true
		}
	}
	return false
}
