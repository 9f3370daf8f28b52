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
	Answers map[string]int `json:"answers"`
}

// watch is the operator's page of a Cache, which counts from now on.
func watching(t *testing.T, cache *Cache) http.Handler {
	t.Helper()
	h := admin.NewHandler(admin.Config{Pages: []admin.Pages{cache}})
	look(t, h)
	return h
}

// look asks the page for what it shows, as of a moment ago.
func look(t *testing.T, h http.Handler) shown {
	t.Helper()
	var all struct {
		Pages []shown `json:"pages"`
	}
	if err := json.Unmarshal([]byte(text(t, h, "/?view=data")), &all); err != nil {
		t.Fatal(err)
	}
	return all.Pages[0]
}

func text(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
	expect.Equal(t, "status of "+path, w.Code, http.StatusOK)
	return w.Body.String()
}

func TestTheOperatorSeesHowPagesWereAnswered(t *testing.T) {
	t.Parallel()
	cache := newCache(t, Config{Space: "shop"})
	h := watching(t, cache)
	site := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = w.Write([]byte("page"))
	}))
	redistest.Await(t, "a page is a hit", func() bool {
		site.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://shop/", nil))
		return look(t, h).Answers["hit"] > 0
	})
	page := look(t, h)
	expect.Equal(t, "loaded", page.Answers["loaded"], 1)
	expect.Equal(t, "space", page.Space, "shop")
}

// The page has a column for each word, in the order of what it fills in.
func TestTheOperatorSeesEveryAnswer(t *testing.T) {
	t.Parallel()
	cache := newCache(t, Config{Limits: Limits{URL: 10}})
	h := watching(t, cache)
	cache.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://shop/a-long-one", nil))
	redistest.Await(t, "it is counted", func() bool { return look(t, h).Answers["refused"] == 1 })
	s, page := look(t, h), text(t, h, "/")
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
