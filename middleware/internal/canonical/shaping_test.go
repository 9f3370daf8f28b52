package canonical

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestTheGuideListsTheFieldsThatTellPagesApart(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range shapingFields {
		if name != http.CanonicalHeaderKey(name) {
			t.Errorf("%s is never found in a header", name)
		}
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("docs/http.md does not list %s", name)
		}
	}
}
