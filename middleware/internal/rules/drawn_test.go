package rules

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

// drawnArgument stands behind the name of a directive.
type drawnArgument struct {
	text            string
	control, member bool   // Cache-Control, and a Dictionary, may have it
	names           string // c: it is a list of fields in Cache-Control, m: in a Dictionary
	number          string // the same for seconds
}

var arguments = []drawnArgument{
	{"", true, true, "", ""}, {"", true, true, "", ""}, {"", true, true, "", ""},
	{"=60", true, true, "c", "cm"}, {"=1", true, true, "c", "cm"}, {`="60"`, true, true, "cm", "c"},
	{"=x", true, true, "c", ""}, {`="x"`, true, true, "cm", ""}, {`="x, y"`, true, true, "cm", ""}, {"=-1", true, true, "c", ""}, {"=1.5", true, true, "c", ""},
	{`="\"x"`, true, true, "", ""}, {`="x y"`, true, true, "", ""}, {`=","`, true, true, "", ""}, {`=""`, true, true, "", ""},
	{"=", true, false, "", ""}, {"=\"\x80\"", true, false, "", ""},
	{"=()", false, true, "", ""}, {`=("x")`, false, true, "", ""}, {"=:eA==:", false, true, "", ""}, {";a=b", false, true, "", ""},
	{";", false, false, "", ""}, {"=x/y", false, true, "", ""}, {" x", false, false, "", ""}, {"\x80", false, false, "", ""},
}

var directives = []string{
	"no-store", "private", "no-cache", "must-revalidate", "proxy-revalidate", "must-understand", "public", "max-age", "s-maxage",
	"stale-while-revalidate", "stale-if-error", "min-fresh", "unknown",
}

// drawnMember is a directive as it was drawn.
type drawnMember struct {
	name string
	drawnArgument
}

// verdictOn says what members say, and knows nothing of how they are parsed: whether they forbid to share the response, whether one with credentials may
// be shared, and whether it must be fresh for a minute.
func verdictOn(all []drawnMember, dictionary bool) (forbidden, shared, fresh bool) {
	kind, valid := "c", true
	if dictionary {
		kind = "m"
	}
	counts, bare := make(map[string]int), make(map[string]bool)
	for _, m := range all {
		valid = valid && (dictionary && m.member || !dictionary && m.control)
		counts[m.name]++
		bare[m.name] = bare[m.name] && !dictionary || m.text == "" || dictionary && m.text == ";a=b" // there, the last counts, and parameters mean nothing
		shared = shared || m.name == "s-maxage" && strings.Contains(m.number, kind)
	}
	shared = shared || bare["public"] || bare["must-revalidate"]
	for _, m := range all {
		listed := valid && strings.Contains(m.names, kind)
		forbidden = forbidden || m.name == "private" && !listed || m.name == "no-store" && !(valid && bare["must-understand"])
		fresh = fresh || m.name == "max-age" && m.text == "=60"
	}
	if !valid && dictionary {
		return false, false, false // as if there were none
	}
	forbidden = forbidden || dictionary && counts["private"] > 1
	fresh = fresh && valid && !forbidden && counts["max-age"]+counts["s-maxage"] == 1 && counts["no-cache"] == 0
	return forbidden, shared, fresh
}

func TestDirectivesAreReadStrictlyWhereTheyForbidAndLooselyWhereTheyPermit(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	kept := 0
	for range 100_000 {
		field := []string{"Cache-Control", "Cdn-Cache-Control", "Shop-Cache-Control"}[random.IntN(3)]
		all := []drawnMember{{"max-age", arguments[3]}}
		if random.IntN(8) == 0 {
			all = nil
		}
		text := make([]string, 0, 4)
		for range random.IntN(4) {
			all = append(all, drawnMember{directives[random.IntN(len(directives))], arguments[random.IntN(len(arguments))]})
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, m := range all {
			name := m.name
			if field == "Cache-Control" && random.IntN(4) == 0 {
				name = strings.ToUpper(name)
			}
			text = append(text, name+m.text)
		}
		h := http.Header{field: {strings.Join(text, ", ")}}
		if random.IntN(2) == 0 && len(text) > 1 {
			h[field] = []string{text[0], strings.Join(text[1:], ",")}
		}
		if field != "Cache-Control" {
			h["Cache-Control"] = []string{"max-age=60"}
		}
		forbidden, shared, fresh := verdictOn(all, field != "Cache-Control")
		s := &Settings{Targets: []string{"Shop-Cache-Control", "Cdn-Cache-Control"}}
		now := time.Now()
		a := s.Assess(&http.Request{Header: http.Header{}}, Reply{Status: 200, Header: h, Sent: now, Received: now})
		if forbidden && a.Unfit == "" {
			t.Fatalf("%q is stored: %+v", h, a)
		}
		if forbidden && !s.Forbids(h) {
			t.Fatalf("%q, set in front, does not forbid", h)
		}
		if a.Unfit == "" && a.Shared && !shared {
			t.Fatalf("%q is shared in spite of credentials", h)
		}
		if fresh {
			kept++
			if a.Unfit != "" || a.Lifetime != time.Minute {
				t.Fatalf("%q is not fresh: %+v", h, a)
			}
		}
	}
	if kept < 10_000 {
		t.Errorf("only %d were fresh", kept)
	}
}
