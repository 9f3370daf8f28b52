package protocol

import "testing"

func FuzzParsePush(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"v", ""}, {"g1", "1"}, {"vgenentry", "gen"}, {"fgen\x00", "gen"}, {"gwriting", "writing"}, {"vge", "gen"}, {"\xff\x00", "\x00"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, body, generation string) {
		what, rest, ok := ParsePush(body, generation)
		if ok && string([]byte{byte(what)})+generation+rest != body {
			t.Errorf("%q for %q is %q and %q", body, generation, what, rest)
		}
		if _, rest, ok := ParsePush("v"+generation+body, generation); !ok || rest != body {
			t.Errorf("a message of %q with %q is %q, %t", generation, body, rest, ok)
		}
	})
}
