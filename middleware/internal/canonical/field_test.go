package canonical

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestTheOrderOfPreferencesCountsUnlessItIsToBeIgnored(t *testing.T) {
	asSent, sorted := New(Settings{}), New(Settings{SortAccept: true})
	for _, name := range []string{"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language"} {
		for _, pair := range [][2]string{{"de, en", "en, de"}, {"de, en;q=0.5", "en;q=0.5, de"}} {
			a, b := []string{pair[0]}, []string{pair[1]}
			expect.Equal(t, name+": the same without SortAccept", asSent.normal(name, a) == asSent.normal(name, b), false)
			expect.Equal(t, name+": the same with it", sorted.normal(name, a) == sorted.normal(name, b), true)
		}
		expect.Equal(t, name+": the same, written in another way", asSent.normal(name, []string{"de, en;q=0.5"}), asSent.normal(name, []string{"de;q=1", "en ; Q=0.500"}))
		expect.Equal(t, name+": other weights", sorted.normal(name, []string{"de, en;q=0.5"}) == sorted.normal(name, []string{"de;q=0.5, en"}), false)
	}
}

// Clients choose the length of their fields: what a megabyte costs must be little more than to read it.
func TestALongFieldIsNotTakenApart(t *testing.T) {
	n := New(Settings{KeyFields: []string{"Accept", "X-A"}})
	for _, name := range []string{"Accept", "X-A", "Forwarded", "X_forwarded_host"} {
		r := &http.Request{URL: new(url.URL), Header: http.Header{name: {strings.Repeat("a ,", 300_000)}}}
		var list int
		allocs := testing.AllocsPerRun(3, func() { list = len(n.Unnamed(r, "")) })
		expect.Equal(t, name+": it counts", list, 1)
		if allocs > 100 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
	long := strings.Repeat("a,", 10_000)
	expect.Equal(t, "long ones are told apart", n.normal("X-A", []string{long + "b"}) == n.normal("X-A", []string{long + "c"}), false)
	expect.Equal(t, "a long one is made from its normal form", n.normal("Accept", []string{long}) == short("="+long), false)
}
