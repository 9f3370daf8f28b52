package monitoring

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/examples/internal/tour"
)

var pictures = flag.String("pictures", "", "write pictures of the dashboard to this folder, of a fleet with five minutes of troubles")

//go:embed testdata/picture.html
var pictureHTML string

// shownPanel is a panel with its data.
type shownPanel struct {
	Title, Unit string
	Log         bool // the axis is logarithmic
	X, Y, W, H  int
	Max         *float64
	Colors      map[string]string // by legend; Grafana's own for others
	Series      []shownSeries
}

type shownSeries struct {
	Legend string
	Values [][2]any // seconds, and a number as text
}

// A picture of what the dashboard shows of a fleet in trouble is for people to look at. Grafana itself draws more than that.
func TestThePictureOfTheDashboardShowsTroubles(t *testing.T) {
	if *pictures == "" {
		t.Skip("-pictures is not set")
	}
	f := newFleet(t)
	server := scraped(t, f.urls...)
	began := time.Now()
	f.trouble()
	drawn := draw(t, server, began, time.Now())
	text, err := json.Marshal(drawn)
	f.must(err)
	f.must(os.MkdirAll(*pictures, 0o755))
	f.must(os.WriteFile(filepath.Join(*pictures, "dashboard.data.json"), text, 0o644))
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Replace(pictureHTML, "DATA", string(text), 1))) // the browser asks again
	}))
	t.Cleanup(page.Close)
	f.must(tour.Browse(t.Context(), os.Stdout, *pictures, "", func(to *tour.Tour) {
		to.Open(page.URL, 1500, 2460)
		to.Await("document.title === 'drawn'")
		to.Picture("dashboard")
	}))
}

// trouble is five minutes with a slow database, a frozen Redis, a user without channels, entries of another program, and more.
func (f *fleet) trouble() {
	rdb := f.server.Client(f)
	pass := func(d time.Duration) { time.Sleep(d) } // the time is what is shown
	ctx := context.Background()
	pass(50 * time.Second)
	f.slow.Store(true)
	pass(40 * time.Second)
	f.slow.Store(false)
	f.broken.Store(true)
	pass(30 * time.Second)
	f.broken.Store(false)
	pass(10 * time.Second)
	f.server.Pause()
	pass(25 * time.Second)
	f.server.Resume()
	pass(20 * time.Second)
	f.redis("ACL", "SETUSER", "app", "resetchannels")
	for i := range 20 { // entries of another program, leases that are gone, and a lock that is
		rdb.Set(ctx, fmt.Sprintf("shop:{product:%d}", i), "another program's", time.Minute)
		rdb.Del(ctx, fmt.Sprintf("shop:{product:%d}:lease", i))
		_, _ = f.jobs.Revoke(ctx, "import") // nobody may hold it
		pass(time.Second)
	}
	f.redis("ACL", "SETUSER", "app", "&*")
	pass(20 * time.Second)
	f.redis("SET", "shop:bypass", "1", "EX", "20")
	pass(45 * time.Second)
}

// draw asks for what each panel shows, from then to now.
func draw(t *testing.T, server string, from, to time.Time) (drawn []shownPanel) {
	t.Helper()
	values := strings.NewReplacer("$__rate_interval", "10s", "$cache", ".*", "$job", ".*", "$instance", ".*")
	for _, p := range panels(t) {
		field := p.FieldConfig.Defaults
		shown := shownPanel{
			Title: p.Title, Unit: field.Unit, Log: field.Custom.ScaleDistribution.Type == "log", X: p.GridPos.X, Y: p.GridPos.Y,
			W: p.GridPos.W, H: p.GridPos.H, Max: field.Max, Colors: make(map[string]string), Series: []shownSeries{},
		}
		for _, o := range p.FieldConfig.Overrides {
			shown.Colors[o.Matcher.Options] = o.Properties[0].Value.FixedColor
		}
		for _, target := range p.Targets {
			shown.Series = append(shown.Series, queryRange(t, server, values.Replace(target.Expr), target.LegendFormat, from, to)...)
		}
		drawn = append(drawn, shown)
	}
	return drawn
}

func queryRange(t *testing.T, server, expr, legend string, from, to time.Time) (found []shownSeries) {
	t.Helper()
	query := url.Values{
		"query": {expr}, "step": {"2"}, "start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(to.Unix())},
	}
	answer, err := client.Get(server + "/api/v1/query_range?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var a struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&a); err != nil || a.Status != "success" {
		t.Fatalf("%s: %v %s", expr, err, a.Error)
	}
	for _, r := range a.Data.Result {
		name := legend
		for label, value := range r.Metric {
			name = strings.ReplaceAll(name, "{{"+label+"}}", value)
		}
		found = append(found, shownSeries{name, r.Values})
	}
	return found
}
