package queue

import (
	"fmt"
	"testing"
)

func FuzzParseGrant(f *testing.F) {
	for _, seed := range []string{"", ":", "1:2", "1:", ":2", "-1:2", "9223372036854775808:1", "1:2:3", "+1:1", "01:1", "1: 2", "0x1:1"} {
		f.Add(seed, int64(1), int64(2))
	}
	f.Fuzz(func(t *testing.T, body string, ticket, fence int64) {
		if _, granted := ParseGrant(body, ticket); granted {
			if _, later := ParseGrant(body, ticket-1); !later && ticket-1 < ticket {
				t.Errorf("%q is for ticket %d, and not for the one before it", body, ticket)
			}
		}
		if got, granted := ParseGrant(fmt.Sprintf("%d:%d", ticket, fence), ticket); !granted || got != fence {
			t.Errorf("the grant for ticket %d with fence %d is %d, %t", ticket, fence, got, granted)
		}
	})
}
