package middleware

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// shown is what the operator's page has of a Cache.
type shown struct {
	Space   string         `json:"space"`
	Ratio   float64        `json:"ratio"`
	Answers map[string]int `json:"answers"`
}

// look asks a new page about the Cache, and returns its text, too.
func look(t *testing.T, cache *Cache) (s shown, page string) {
	t.Helper()
	h := admin.NewHandler(admin.Config{Pages: []admin.Pages{cache}})
	ask := func(path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		expect.Equal(t, "status of "+path, w.Code, http.StatusOK)
		return w.Body.String()
	}
	var all struct {
		Pages []shown `json:"pages"`
	}
	if err := json.Unmarshal([]byte(ask("/?view=data")), &all); err != nil {
		t.Fatal(err)
	}
	return all.Pages[0], ask("/")
}

func TestTheOperatorSeesHowPagesWereAnswered(t *testing.T) {
	t.Parallel()
	cache := newCache(t, Config{Space: "shop"})
	site := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = w.Write([]byte("page"))
	}))
	look(t, cache) // what is asked before anybody looks is not counted
	redistest.Await(t, "a page is a hit", func() bool {
		site.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://shop/", nil))
		s, _ := look(t, cache)
		return s.Answers["hit"] > 0
	})
	page, _ := look(t, cache)
	expect.Equal(t, "loaded", page.Answers["loaded"], 1)
	expect.Equal(t, "space", page.Space, "shop")
}

// The page has a column for each word, in the order of what it fills in.
func TestTheOperatorSeesEveryAnswer(t *testing.T) {
	t.Parallel()
	cache := newCache(t, Config{Limits: Limits{URL: 10}})
	look(t, cache)
	cache.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://shop/a-long-one", nil))
	s, page := look(t, cache)
	expect.Equal(t, "refused", s.Answers["refused"], 1)
	table := regexp.MustCompile(`(?s)<table id="pages">.*?</table>`).FindString(page)
	var columns []string
	for _, column := range regexp.MustCompile(`<th [^>]*>([a-z]+)</th>`).FindAllStringSubmatch(table, -1)[1:] { // after the cache
		columns = append(columns, column[1])
	}
	filled := regexp.MustCompile(`\[('hit',[^]]*)\]\.map`).FindStringSubmatch(page)[1]
	expect.Equal(t, "columns", strings.Join(columns, ", "), strings.ReplaceAll(filled, "'", ""))
	for word := range s.Answers {
		if !slices.Contains(columns, word) {
			t.Errorf("%s has no column", word)
		}
	}
}
