package tier

import "testing"

func FuzzParseNotice(f *testing.F) {
	for _, seed := range []string{"", "a 1 k", "a 1+ *", "a 0 k", "a 18446744073709551616 k", " 1 ", "a  1 k", "a 1", "a +1 k", "a 01 k", "a 1++ k"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		n, ok := ParseNotice(message)
		if !ok {
			return
		}
		if again, ok := ParseNotice(n.String()); !ok || again != n {
			t.Errorf("%q is %+v, and that is %+v, %v", message, n, again, ok)
		}
		if n.Number == 0 || len(n.Source) > maxSource {
			t.Errorf("%q is %+v", message, n)
		}
	})
}

func FuzzParseRepetition(f *testing.F) {
	for _, seed := range []string{"", "a 1= 1", "a 2= 1", "a 1= 2", "a 0= 0", "a 1 k", "a 1= ", " 1= 1", "a  1= 1", "a 18446744073709551615= 1", "a 18446744073709551616= 1", "a +1= 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		r, ok := parseRepetition(message)
		if !ok {
			return
		}
		if again, ok := parseRepetition(r.String()); !ok || again != r {
			t.Errorf("%q is %+v, and that is %+v, %v", message, r, again, ok)
		}
		if r.first == 0 || r.first > r.last || len(r.source) > maxSource {
			t.Errorf("%q is %+v", message, r)
		}
		if _, notice := ParseNotice(message); notice {
			t.Errorf("%q is a notice, too", message)
		}
	})
}
