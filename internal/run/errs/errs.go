// Package errs joins the errors of a call about many things, so that they fit a log line, and shortens names for it.
package errs

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	shown      = 10  // errors, or names, are in a text; the rest is counted
	shownBytes = 200 // of a name are
)

// list is what Join returns. Its errors are neither nil nor lists.
type list struct{ errs []error }

// Join is errors.Join for a call about many things: errors.Is and errors.As find each error. The text has ten, each on
// a line of its own, and counts the rest; errors that say the same stand in it once.
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
	var some []string
	for _, name := range n[:min(len(n), shown)] {
		some = append(some, Short(name))
	}
	if len(n) <= shown {
		return fmt.Sprintf("%q", some)
	}
	return fmt.Sprintf("%q and %d more", some, len(n)-shown)
}

// Short is a name as an error or a log has it: of one with more than 200 bytes, these, and how many it has.
func Short(name string) string {
	n := shownBytes
	if len(name) <= n {
		return name
	}
	for n > shownBytes-utf8.UTFMax && !utf8.RuneStart(name[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d bytes)", name[:n], len(name))
}

// TooLong is why a name is refused that has more bytes than it may have.
func TooLong(what, name string, most int) error {
	return fmt.Errorf("%s %.40q… has %d bytes, more than %d", what, name, len(name), most)
}
