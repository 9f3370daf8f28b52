package wake

import (
	"strings"
	"testing"
)

func TestFrameIsParsed(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string][2]string{
		"1:kbody":          {"k", "body"},
		"3:keybody":        {"key", "body"},
		"1:k":              {"k", ""},
		"0:":               {"", ""},
		"0:body":           {"", "body"},
		"3:a:bbody":        {"a:b", "body"},
		"3:1:k:rest":       {"1:k", ":rest"},
		"2:\xff\x00\x00":   {"\xff\x00", "\x00"},
		"4:\r\n\r\nbody":   {"\r\n\r\n", "body"},
		"10:0123456789abc": {"0123456789", "abc"},
	} {
		key, body, ok := parseFrame(payload)
		if !ok || key != want[0] || body != want[1] {
			t.Errorf("parseFrame(%q) = %q, %q, %v; want %q", payload, key, body, ok, want)
		}
	}
}

func TestWhatIsNoFrameIsRefused(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		"", ":", "key", "3", "x:key", ":key", " 3:key", "-1:key", "4:key", "1:", "3.0:key", "0x3:key",
		"99999999999999999999:key", "9223372036854775807:key", "-9223372036854775808:key",
	} {
		if key, body, ok := parseFrame(payload); ok || key != "" || body != "" {
			t.Errorf("parseFrame(%q) = %q, %q, %v; want nothing", payload, key, body, ok)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, seed := range []string{"", "1:kbody", "0:", "3:a:b", "-1:k", "4:key", "+1:k", "001:k", "\xff:\x00"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if key, body, ok := parseFrame(Frame(a, b)); !ok || key != a || body != b {
			t.Errorf("parseFrame(Frame(%q, %q)) = %q, %q, %v", a, b, key, body, ok)
		}
		if key, body, ok := parseFrame(a); ok && !strings.HasSuffix(a, ":"+key+body) {
			t.Errorf("parseFrame(%q) = %q, %q: not what was sent", a, key, body)
		}
	})
}
