package admin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func probed(h http.HandlerFunc) string {
	w := httptest.NewRecorder()
	h(w, httptest.NewRequest(http.MethodGet, "http://10.0.0.7:8080/", nil))
	return fmt.Sprintf("%d %s", w.Code, w.Body)
}

func TestAProbeSaysWhatAGuardIsAndOnlyIfAskedToWhatRedisIs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	g, err := cacheguard.New(s.Client(t), cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	warming := "warming"
	p := &admin.Probe{Guards: []*cacheguard.Guard{g}, NotYet: func() string { return warming }}
	strict := &admin.Probe{Guards: p.Guards, NeedsRedis: true}
	expect.Equal(t, "before it is warm", probed(p.Ready), "503 warming\n")
	expect.Equal(t, "and yet", probed(p.Live), "200 live\n")
	warming = ""
	expect.Equal(t, "then", probed(p.Ready), "200 ready\n")
	s.Kill()
	redistest.Await(t, "the breaker is open", func() bool {
		_ = g.Invalidate(t.Context(), "a")
		return g.Stats().BreakersOpen == 1
	})
	expect.Equal(t, "without Redis", probed(p.Ready)+probed(p.Live), "200 ready\n200 live\n")
	expect.Equal(t, "if it needs Redis", probed(strict.Ready)+probed(strict.Live), "503 redis does not answer\n200 live\n")
	_ = g.Close()
	expect.Equal(t, "closed", probed(p.Ready)+probed(p.Live), "503 closed\n503 closed\n")
}
