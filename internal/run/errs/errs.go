// Package errs joins the errors of a call about many things, so that they fit a log line.
package errs

import (
	"fmt"
	"strings"
)

// shown is how many errors, or names, a text has; the rest is counted.
const shown = 10

// list is what Join returns. Its errors are neither nil nor lists.
type list struct{ errs []error }

// Join is errors.Join for a call about many things: errors.Is and errors.As find each error. The text has ten, each on a line of its
// own, and counts the rest; errors that say the same stand in it once.
func Join(errs ...error) error {
	var all []error
	for _, err := range errs {
		if some, ok := err.(*list); ok { //nolint:errorlint // what wraps a list is an error of its own
			all = append(all, some.errs...)
		} else if err != nil {
			all = append(all, err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &list{all}
}

func (l *list) Error() string {
	said := make(map[string]struct{}, len(l.errs))
	var lines []string
	for _, err := range l.errs {
		text := err.Error()
		if _, again := said[text]; again {
			continue
		}
		said[text] = struct{}{}
		if len(lines) < shown {
			lines = append(lines, text)
		}
	}
	if more := len(said) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more errors", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns all of them.
func (l *list) Unwrap() []error { return l.errs }

// Names is how an error names many keys or tags: ten of them, and how many more there are.
type Names []string

func (n Names) String() string {
	if len(n) <= shown {
		return fmt.Sprintf("%q", []string(n))
	}
	return fmt.Sprintf("%q and %d more", []string(n[:shown]), len(n)-shown)
}
