package mutex

import "testing"

func FuzzParseGrant(f *testing.F) {
	for _, seed := range []string{"", "1", "0", "-1", "+2", "02", " 2", "2 ", "1795468916003619", "9223372036854775807", "9223372036854775808", "1e9"} {
		f.Add(seed, int64(1))
	}
	f.Fuzz(func(t *testing.T, body string, answered int64) {
		if fence, granted := parseGrant(body, answered); granted && fence <= answered {
			t.Errorf("%q is a grant with fence %d, after an answer with %d", body, fence, answered)
		}
	})
}
