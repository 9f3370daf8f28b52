package report

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/cacheguard/go/internal/run/observe"
	"github.com/cacheguard/go/internal/testing/expect"
)

// What is counted or logged is shown, too. These tests draw from the code what there is, so that what is added to one place only fails.

// allEvents are the constants of What.
func allEvents(t *testing.T) (all []What) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "events.go", nil, 0)
	expect.ErrorIs(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is {
			if of, named := spec.Type.(*ast.Ident); named && of.Name == "What" {
				text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				expect.ErrorIs(t, err)
				all = append(all, What(text))
			}
		}
		return true
	})
	if len(all) < 10 {
		t.Fatalf("only %d events are found: %q", len(all), all)
	}
	return all
}

func TestEachEventIsShownOfItsCacheOrSomewhereElse(t *testing.T) {
	t.Parallel()
	elsewhere := map[What]string{
		Rejected: "a load that is overtaken is no fault", Uncompressed: "of the Guard", Altered: "Stats.Altered", AlteredAgain: "Stats.Altered",
		Unrefreshed: "Stats.FailedRefreshes", Unreplaced: "Stats.NotReplaced", Removed: "Stats.NotReplaced", RemovedAgain: "Stats.NotReplaced", Kept: "Stats.NotReplaced",
		Behind:    "the trouble that it is due to, and VerifyConfig's counts",
		Overtaken: "a load that is overtaken is no fault", Panicked: "a load that failed", Slow: "among the loads", StillRuns: "among the loads",
		Waits: "of the instance that writes", Closing: "of the Guard", Stepped: "of the Guard", Dropped: "of the Guard", Forgotten: "of the Guard",
	}
	var j Journal
	for _, what := range allEvents(t) {
		var tally observe.Tally
		j.Observe().Happened(&tally, what)
		counted := !reflect.DeepEqual(tally.Read(""), observe.Tallied{})
		if why, is := elsewhere[what]; counted == is {
			t.Errorf("%q: counted of its Cache is %v, and shown elsewhere is %v (%s)", what, counted, is, why)
		}
		delete(elsewhere, what)
	}
	expect.Equal(t, "events that are none", len(elsewhere), 0)
}

func TestEachLastingTroubleIsShownAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		var j Journal
		j.Open(Config{Logger: logger, Pending: func() int { return 1 }, Untold: func() int { return 1 }})
		found, shown := 0, 0
		fields := reflect.ValueOf(&j).Elem()
		for i := range fields.NumField() {
			e := episodeIn(fields.Field(i))
			if e == nil {
				continue
			}
			name := fields.Type().Field(i).Name
			e.begin()
			time.Sleep(time.Minute)
			all := lasting(j.Troubles())
			if found++; all != shown+1 {
				t.Errorf("%s: %d troubles are shown, after %d", name, all, shown)
			}
			shown = all
			expect.Equal(t, name+": begun", lines(text(), `cacheguard: `+e.begun), 1)
		}
		expect.Equal(t, "troubles that can be shown", found, durations(reflect.TypeFor[observe.Troubles]()))
		f := j.Failing("product")
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
	of := reflect.ValueOf(t)
	for i := range of.NumField() {
		if d, is := of.Field(i).Interface().(time.Duration); is && d > 0 {
			n++
		}
	}
	return n
}

func durations(of reflect.Type) (n int) {
	for i := range of.NumField() {
		if of.Field(i).Type == reflect.TypeFor[time.Duration]() {
			n++
		}
	}
	return n
}

// Somebody looks for the line at night.
func TestEachLineOfTheLogIsInTheGuideForTheNight(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/at-3am.md")
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
	for _, what := range allEvents(t) {
		if j.Tell(t.Context(), what, "", nil); strings.Contains(text(), "cacheguard: "+string(what)) {
			has(string(what))
		}
	}
	fields := reflect.ValueOf(&j).Elem()
	for i := range fields.NumField() {
		if e := episodeIn(fields.Field(i)); e != nil {
			has(e.begun)
			has(e.over)
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
