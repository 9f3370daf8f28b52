// Package monitoring has a dashboard and alert rules, and the tests of both.
package monitoring

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/leaks"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/metrics"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// expressions returns the expressions of the dashboard.
func expressions(t *testing.T) (found []string) {
	t.Helper()
	var dashboard any
	if err := json.Unmarshal(read(t, "dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(part any) {
		switch part := part.(type) {
		case []any:
			for _, p := range part {
				walk(p)
			}
		case map[string]any:
			for name, p := range part {
				if text, ok := p.(string); ok && name == "expr" {
					found = append(found, text)
				}
				walk(p)
			}
		}
	}
	walk(dashboard)
	if len(found) == 0 {
		t.Fatal("the dashboard has no expressions")
	}
	return found
}

// exported are the label values of each metric, a histogram's parts among them.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{}) // is not asked
	defer client.Close()
	guard, err := cacheguard.New(client, cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Observers: []cacheguard.Observer{m.Guard("shop")}})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	m.Watch("shop", guard)
	m.Feed("shop", func() cdc.Stats { return cdc.Stats{} })
	m.HTTP("shop")
	m.Lock("jobs")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string][]string)
	for _, f := range families {
		for _, series := range f.GetMetric() {
			for _, label := range series.GetLabel() {
				for _, part := range []string{"", "_bucket", "_count", "_sum"} {
					values[f.GetName()+part] = append(values[f.GetName()+part], label.GetName()+"="+label.GetValue())
				}
			}
		}
	}
	return values
}

var (
	selector = regexp.MustCompile(`(cacheguard_\w+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
)

func TestLabelsAreMatchedWithValuesThatAreExported(t *testing.T) {
	t.Parallel()
	values, matched := exported(t), 0
	for _, text := range append(expressions(t), string(read(t, "alerts.yml"))) {
		for _, s := range selector.FindAllStringSubmatch(text, -1) {
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				if strings.HasPrefix(m[3], "$") {
					continue // the dashboard's variable
				}
				for value := range strings.SplitSeq(m[3], "|") {
					matched++
					if !slices.Contains(values[s[1]], m[1]+"="+value) {
						t.Errorf("%s has no %s=%q", s[1], m[1], value)
					}
				}
			}
		}
	}
	if matched == 0 {
		t.Error("no label is matched")
	}
}

func TestPromtoolAcceptsRulesAndExpressions(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing: install Prometheus, or run make test-all, which does")
	}
	// An expression of the dashboard is checked as a rule that records it.
	rules := []byte("groups:\n- name: dashboard\n  rules:\n")
	for _, expr := range expressions(t) {
		expr, err := json.Marshal(strings.NewReplacer("$__rate_interval", "1m", "$cache", "shop", "$job", "shop", "$instance", "a").Replace(expr))
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, "  - record: shown\n    expr: "...)
		rules = append(append(rules, expr...), '\n')
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, rules, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, checked := range []string{"alerts.yml", file} {
		said, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint=none", checked).CombinedOutput()
		if err != nil || !bytes.Contains(said, []byte("SUCCESS")) {
			t.Errorf("%s: %v\n%s", checked, err, said)
		}
	}
}

func TestAlertsFireForWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"intents.yml", "loads.yml", "locks.yml", "pages.yml", "redis.yml"} {
		said, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", filepath.Join("testdata", file)).CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, said)
		}
	}
}

var (
	alert   = regexp.MustCompile(`(?m)^ +- alert: (\w+)`)
	runbook = regexp.MustCompile(`(?m)^ +runbook_url: https://github.com/cacheguard/go/blob/main/docs/at-3am.md#([a-z0-9-]+)$`)
	heading = regexp.MustCompile(`(?m)^##+ (.+)$`)
)

func TestEachAlertNamesWhereToReadOnAndIsNamedThere(t *testing.T) {
	t.Parallel()
	alerts, guide := string(read(t, "alerts.yml")), string(read(t, "../../docs/at-3am.md"))
	anchors := make(map[string]bool)
	for _, title := range heading.FindAllStringSubmatch(guide, -1) {
		anchors[strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(title[1]), " ", "-"), ",", "")] = true
	}
	names := alert.FindAllStringSubmatch(alerts, -1)
	for i, rule := range alert.Split(alerts, -1)[1:] {
		found := runbook.FindAllStringSubmatch(rule, -1)
		if len(found) != 1 || !anchors[found[0][1]] {
			t.Errorf("%s: %v is no section of docs/at-3am.md", names[i][1], found)
		}
		if !strings.Contains(guide, names[i][1]) {
			t.Errorf("docs/at-3am.md does not name %s", names[i][1])
		}
	}
}

// panels returns the panels of the dashboard.
func panels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(read(t, "dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

type panel struct {
	ID                 int
	Title, Description string
	GridPos            struct{ H, W, X, Y int }
	Targets            []struct{ Expr, LegendFormat string }
	FieldConfig        struct {
		Defaults struct {
			Unit   string
			Max    *float64
			Custom struct{ ScaleDistribution struct{ Type string } }
		}
		Overrides []struct {
			Matcher    struct{ Options string }
			Properties []struct{ Value struct{ FixedColor string } }
		}
	}
}

func TestTheDashboardBeginsWithWhatMattersMost(t *testing.T) {
	t.Parallel()
	all := panels(t)
	for i, want := range []string{"Hit ratio", "Loads avoided", "Slowest kinds, p99 of loads"} {
		if all[i].Title != want || all[i].GridPos.Y != 0 {
			t.Errorf("panel %d is %q, at %+v", i, all[i].Title, all[i].GridPos)
		}
	}
}

func TestAPanelSaysWhatItShows(t *testing.T) {
	t.Parallel()
	for _, p := range panels(t) {
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("panel %d lacks a title, a description or a unit: %+v", p.ID, p)
		}
		for _, target := range p.Targets {
			if target.LegendFormat == "" {
				t.Errorf("%q has a line without a name", p.Title)
			}
		}
	}
}

// Rates, gauges and durations do not share an axis.
func TestAPanelHasOneUnit(t *testing.T) {
	t.Parallel()
	units := map[string][]string{"seconds": {"s"}, "rate": {"reqps", "ops", "Bps", "percentunit"}, "gauge": {"short", "bytes", "s"}}
	kind := func(expr string) string {
		switch {
		case strings.Contains(expr, "histogram_quantile"), strings.Contains(expr, "_seconds_total"):
			return "seconds"
		case strings.Contains(expr, "rate("), strings.Contains(expr, "increase("):
			return "rate"
		}
		return "gauge"
	}
	seen := make(map[[2]int]string)
	for _, p := range panels(t) {
		if of := kind(p.Targets[0].Expr); !slices.Contains(units[of], p.FieldConfig.Defaults.Unit) {
			t.Errorf("%q shows %s in %q", p.Title, of, p.FieldConfig.Defaults.Unit)
		}
		for _, target := range p.Targets {
			if kind(target.Expr) != kind(p.Targets[0].Expr) {
				t.Errorf("%q mixes %s and %s", p.Title, kind(p.Targets[0].Expr), kind(target.Expr))
			}
			if !strings.Contains(target.Expr, `instance=~"$instance"`) {
				t.Errorf("%q does not follow the instance variable: %s", p.Title, target.Expr)
			}
		}
		place := [2]int{p.GridPos.X, p.GridPos.Y}
		if other := seen[place]; other != "" {
			t.Errorf("%q covers %q", p.Title, other)
		}
		seen[place] = p.Title
	}
}
