package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// send sends a request to the page, as a browser on this machine would.
func send(t *testing.T, h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:1"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestThePageLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	h := handler(newLab(t, settings{Mode: modeHand}))
	for path, kind := range map[string]string{
		"/": "text/html", "/lab.js": "text/javascript", "/lab.css": "text/css", "/uplot/uPlot.iife.min.js": "text/javascript",
		"/uplot/uPlot.min.css": "text/css", "/uplot/LICENSE": "text/plain", "/icon.svg": "image/svg+xml",
	} {
		w := send(t, h, "GET", path, "")
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) {
			t.Errorf("%s: %d, %s", path, w.Code, w.Header().Get("Content-Type"))
		}
		if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
	}
}

func TestOnlyThePageItselfMayAct(t *testing.T) {
	t.Parallel()
	l := newLab(t, settings{Mode: modeHand})
	h := handler(l)
	for _, c := range []struct {
		code    int
		headers []string
	}{
		{204, []string{"Sec-Fetch-Site", "same-origin"}},
		{204, []string{"Origin", "http://127.0.0.1:1"}},
		{403, []string{"Sec-Fetch-Site", "cross-site"}},
		{403, []string{"Sec-Fetch-Site", "same-site"}}, // another port of this machine
		{403, []string{"Origin", "http://127.0.0.1:2"}},
		{403, []string{"Origin", "null"}},
		{421, []string{"Host", "attacker.example"}},
		{421, []string{"Host", "192.0.2.1:1", "Sec-Fetch-Site", "same-origin"}},
		{204, []string{"Host", "localhost:1", "Sec-Fetch-Site", "same-origin"}},
	} {
		before := l.expiries
		w := send(t, h, "POST", "/expire", "", c.headers...)
		if done := l.expiries - before; w.Code != c.code || (done == 1) != (c.code == 204) {
			t.Errorf("%v: %d, want %d; done %d times", c.headers, w.Code, c.code, done)
		}
	}
	if w := send(t, h, "GET", "/", "", "Host", "attacker.example:80"); w.Code != 421 {
		t.Errorf("another name may read: %d", w.Code)
	}
	if w := send(t, h, "GET", "/expire", ""); w.Code != 404 {
		t.Errorf("GET acts: %d", w.Code)
	}
}

func TestAWrongActionIsRefusedAndNamed(t *testing.T) {
	t.Parallel()
	h := handler(newLab(t, settings{Mode: modeHand}))
	for _, c := range [][3]string{
		{"/settings", `{"mode":"magic","ttl":10}`, "mode"},
		{"/settings", `{"mode":"hand","ttl":10,"callers":501}`, "callers"},
		{"/settings", `{"mode":"hand","ttl":0}`, "ttl"},
		{"/settings", `{`, "settings"},
		{"/redis/gone", "", "redis"},
		{"/instances/5/kill", "", "instances"},
		{"/instances/-1/kill", "", "instances"},
		{"/instances/0/hug", "", "instances"},
	} {
		if w := send(t, h, "POST", c[0], c[1]); w.Code != 400 || !strings.HasPrefix(w.Body.String(), c[2]) {
			t.Errorf("%v: %d, %s", c, w.Code, w.Body)
		}
	}
}

func TestThePageShowsWhatHappens(t *testing.T) {
	t.Parallel()
	l := newLab(t, settings{Mode: modeHand})
	s := httptest.NewServer(handler(l))
	defer s.Close()
	r, err := s.Client().Get(s.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Error(kind)
	}
	events := bufio.NewScanner(r.Body)
	events.Buffer(nil, 1<<20)
	until := func(what string, fact func(state) bool) {
		t.Helper()
		for events.Scan() {
			var now state
			if data, ok := strings.CutPrefix(events.Text(), "data: "); ok {
				must(t, json.Unmarshal([]byte(data), &now))
				if fact(now) {
					return
				}
			}
		}
		t.Fatal("never: ", what)
	}
	act := func(path, body string) {
		t.Helper()
		if w := send(t, handler(l), "POST", path, body); w.Code != 204 {
			t.Errorf("%s: %d, %s", path, w.Code, w.Body)
		}
	}
	until("warm", func(s state) bool { return !s.Missing && len(s.Instances) == instances && s.Fresh > 0 })
	act("/expire", "")
	until("expired", func(s state) bool { return s.Missing && s.Expiries == 1 })
	act("/redis/down", "")
	act("/instances/2/kill", "")
	until("killed", func(s state) bool { return s.Redis == down && s.Instances[2].State == "killed" })
	act("/redis/up", "")
	act("/instances/2/start", "")
	act("/write", "")
	until("written", func(s state) bool {
		return s.Redis == up && s.Instances[2].State != "killed" && strings.Contains(s.Journal[len(s.Journal)-1].Text, "wrote version 1")
	})
	act("/settings", `{"mode":"guard","callers":0,"ttl":60,"intend":true}`)
	act("/write-late", "")
	until("committed", func(s state) bool { return s.Version == 2 && s.Settings.Intend })
	act("/settings", `{"mode":"guard","callers":10,"ttl":60,"local":true,"slow":true}`)
	until("local", func(s state) bool { return s.Instances[0].Answers["local"] > 0 && s.Latency == slowTime.Milliseconds() })
}
