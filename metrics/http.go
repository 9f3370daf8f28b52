package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/middleware"
)

var results = []middleware.Result{
	middleware.Hit, middleware.Stale, middleware.Loaded, middleware.Shared, middleware.Bypassed, middleware.Passed,
	middleware.Failed, middleware.Refused,
}

// other is the route of requests that are for none of Config.Routes.
const other = "other"

// HTTP returns a function for the Config.OnResponse of a middleware.Cache, whose metrics have the label
// cache=name.
func (m *Metrics) HTTP(name string) func(*http.Request, middleware.Response) {
	type series struct{ route, result string }
	count := make(map[series]prometheus.Counter)
	took := make(map[middleware.Result]prometheus.Observer)
	for _, result := range results {
		took[result] = m.httpTime.WithLabelValues(name, m.timed(string(result)))
		for _, route := range append([]string{other}, m.routes...) {
			count[series{route, string(result)}] = m.http.WithLabelValues(name, route, string(result))
		}
	}
	return func(_ *http.Request, res middleware.Response) {
		c := count[series{res.Route, string(res.Result)}]
		if c == nil {
			c = count[series{other, string(res.Result)}]
		}
		c.Inc()
		took[res.Result].Observe(res.Took.Seconds())
	}
}
