package middleware

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch/observe"
)

// trouble is what the operator's page says is wrong with pages.
type trouble struct {
	Ratio    float64 `json:"ratio"`
	AllRatio float64 `json:"all_ratio"`
	Failing  *share  `json:"failing"`
	Faulty   *share  `json:"faulty"`
	Uncached *share  `json:"uncached"`
}

type share struct {
	Requests, Of int
	Why          string
}

// troubled is a site whose handler can be changed, and what its page shows. Time goes by when the test says so.
type troubled struct {
	*testing.T
	env   *cacheguardtest.Env
	cache *Cache
	serve http.HandlerFunc
}

func newTroubled(t *testing.T) *troubled {
	t.Helper()
	s := &troubled{T: t, env: cacheguardtest.New(t, cacheguard.Config{}), serve: says("page", fresh)}
	cache, err := New(s.env.Guard, Config{StaleIfError: -1})
	expect.ErrorIs(t, err)
	s.cache = cache
	s.look() // it counts from now on
	return s
}

// look is what somebody sees who has not looked before.
func (s *troubled) look() (is trouble) {
	s.Helper()
	var all struct {
		Pages []trouble `json:"pages"`
	}
	h := admin.NewHandler(admin.Config{Pages: []admin.Pages{s.cache}})
	expect.ErrorIs(s, json.Unmarshal([]byte(text(s.T, h, "/?view=data")), &all))
	return all.Pages[0]
}

func (s *troubled) ask(times int, method string) {
	s.Helper()
	handler := s.cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r) }))
	for range times {
		func() {
			defer func() { _ = recover() }()
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "http://shop/", nil))
		}()
		s.env.Settle()
	}
}

func (s *troubled) hours() {
	s.Helper()
	for range 3 {
		s.env.Advance(2 * window)
		s.look()
	}
}

func TestTheOperatorSeesThatPagesFailAndThatTheyDoNoMore(t *testing.T) {
	t.Parallel()
	s := newTroubled(t)
	s.ask(100, http.MethodGet)
	is := s.look()
	expect.Equal(t, "while all is well", is.Failing == nil && is.Uncached == nil && is.Ratio == 0.99, true)
	s.hours()
	expect.Equal(t, "nobody asks: ratio", s.look().Ratio, -1)
	s.serve = func(http.ResponseWriter, *http.Request) { panic("oops") }
	s.ask(10, http.MethodGet)
	if is = s.look(); is.Failing == nil || *is.Failing != (share{10, 10, "/"}) {
		t.Errorf("%+v", is.Failing)
	}
	expect.Equal(t, "ratio", is.Ratio, 0)
	expect.Equal(t, "ratio of all", is.AllRatio, 0.9)
	s.env.Advance(observe.Recently)
	expect.Equal(t, "none fails any more", s.look().Failing == nil, true)
	s.hours()
	expect.Equal(t, "it is over", s.look().Failing == nil, true)
}

func TestTheOperatorSeesWhyNothingCanBeStored(t *testing.T) {
	t.Parallel()
	s := newTroubled(t)
	s.ask(300, http.MethodGet)
	s.hours()
	s.serve = says("page", fresh, "Set-Cookie: a=b")
	s.ask(fewestNotStored, http.MethodGet)
	is := s.look()
	if is.Uncached == nil || *is.Uncached != (share{fewestNotStored, fewestNotStored, "set-cookie"}) {
		t.Errorf("%+v", is.Uncached)
	}
	expect.Equal(t, "ratio", is.Ratio, 0)
	expect.Equal(t, "ratio of all is of what came before, too", is.AllRatio > 0.9, true)
	expect.Equal(t, "is failing", is.Failing != nil, false)
	s.env.Advance(observe.Recently)
	expect.Equal(t, "none is refused any more", s.look().Uncached == nil, true)
	s.hours()
	s.serve = says("page", fresh)
	s.ask(fewestNotStored, http.MethodGet)
	expect.Equal(t, "it is over", s.look().Uncached == nil, true)
}

// Some pages are hits, and that the others are not can be no handler's intention.
func TestTheOperatorSeesWhyMostCannotBeStored(t *testing.T) {
	t.Parallel()
	for reason, field := range map[string]string{"set-cookie": "Set-Cookie: a=b", "private": "Cache-Control: private"} {
		s := newTroubled(t)
		s.ask(fewestNotStored*3/10, http.MethodGet)
		s.serve = says("page", fresh, field)
		expect.ErrorIs(t, s.cache.Invalidate(t.Context(), httptest.NewRequest(http.MethodGet, "http://shop/", nil)))
		s.ask(fewestNotStored*7/10, http.MethodGet)
		expect.Equal(t, "seven in ten are told of, with "+reason, s.look().Uncached != nil, reason == "set-cookie")
	}
}

func TestTheOperatorSeesThatThePageIsAnError(t *testing.T) {
	t.Parallel()
	s := newTroubled(t)
	s.serve = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.WriteHeader(http.StatusInternalServerError)
	}
	s.ask(10, http.MethodGet)
	is := s.look()
	if is.Faulty == nil || *is.Faulty != (share{10, 9, "/"}) {
		t.Errorf("%+v", is.Faulty)
	}
	expect.Equal(t, "ratio", is.Ratio, 0)
}

// fewestNotStored is as many as package admin wants to see.
const fewestNotStored = 20

func TestWhatNoCacheAnswersIsNoneOfWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	s := newTroubled(t)
	s.ask(100, http.MethodPost)
	s.ask(1, http.MethodGet)
	redistest.Await(t, "it is a hit", func() bool {
		s.ask(1, http.MethodGet)
		return s.look().Ratio >= 0.5
	})
	expect.Equal(t, "not stored", s.look().Uncached == nil, true)
}
