package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestThePageIsThereUnderAPathOfChi(t *testing.T) {
	t.Parallel()
	err := open(t.Context(), 0, func(ctx context.Context, _ *shop, url string) error {
		defer http.DefaultClient.CloseIdleConnections()
		for _, at := range []string{url, url + "/", url + "?view=data", url + "/?view=data"} {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			_ = answer.Body.Close() // what it says is tested elsewhere
			kind := "text/html"
			if strings.Contains(at, "?") {
				kind = "application/json"
			}
			if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), kind) {
				t.Errorf("%s: %s, %s", at, answer.Status, answer.Header.Get("Content-Type"))
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
