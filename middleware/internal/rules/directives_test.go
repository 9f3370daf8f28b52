package rules

import (
	"net/http"
	"testing"
)

func FuzzDirectives(f *testing.F) {
	f.Add(`max-age=60, no-cache="a, b", private`)
	f.Fuzz(func(_ *testing.T, line string) {
		Parse([]string{line})
		targeted(http.Header{"X": {line}}, []string{"X"})
	})
}
