package cdc

import (
	"errors"
	"fmt"

	"github.com/cacheguard/go/cacheguard"
)

// ErrSpellings is matched by an error of SelfCheck: the database finds a row by other texts than its key, so that the service may have entries of it under
// keys that the feed does not see. Collations do that that ignore case, accents or spaces at the end, and types such as uuid, whose texts are not one for each value.
var ErrSpellings = errors.New("the database finds rows by several texts of it")

// Exactly is for loaders whose query may find a row by another text than its key. It returns an error that matches cacheguard.ErrNotFound if the key that was
// asked for is not the one of the row: "Abc" is a thing, "abc" is not, whatever the collation says. Name the column in Table.Exact then.
func Exactly[K comparable](asked, own K) error {
	if asked == own {
		return nil
	}
	return fmt.Errorf("cdc: there is %v, and not %v: %w", own, asked, cacheguard.ErrNotFound)
}
