package rules

import (
	"strings"
	"testing"
)

func FuzzListsETag(f *testing.F) {
	for _, seed := range []string{"", "*", `"a"`, `W/"a"`, `"b", "a"`, `"b","a`, `"a`, `W/`, `W/W/"a"`, `"",,"a"`, "\"a\x00\"", `a, "a"`} {
		f.Add(seed, `"a"`)
	}
	f.Fuzz(func(t *testing.T, list, etag string) {
		if listsETag([]string{list}, "") && strings.TrimSpace(list) != "*" {
			t.Errorf("%q lists the ETag of a page that has none", list)
		}
		opaque, quoted := strings.CutPrefix(weak(etag), `"`)
		opaque, ended := strings.CutSuffix(opaque, `"`)
		if !quoted || !ended || strings.Contains(opaque, `"`) || len(etag) > 1000 {
			return
		}
		if !listsETag([]string{`"before" , W/"and"`, etag + `,"after"`}, etag) {
			t.Errorf("%q is not in a list that has it", etag)
		}
		if listsETag([]string{list}, etag) && strings.TrimSpace(list) != "*" && !strings.Contains(list, weak(etag)) {
			t.Errorf("%q lists %q", list, etag)
		}
	})
}
