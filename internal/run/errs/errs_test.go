package errs_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/testing/expect"
)

func many(n int) (all []error) {
	for i := range n {
		all = append(all, fmt.Errorf("key %d: %w", i, io.EOF))
	}
	return all
}

func TestManyErrorsFitALogLineAndAllAreFound(t *testing.T) {
	t.Parallel()
	last := errors.New("the last")
	err := errs.Join(append(many(2000), last)...)
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 11 || lines[10] != "and 1991 more errors" || lines[0] != "key 0: EOF" {
		t.Errorf("%q", lines)
	}
	expect.ErrorIs(t, err, last, io.EOF)
}

func TestWhatIsJoinedAgainIsOneList(t *testing.T) {
	t.Parallel()
	err := errs.Join(errs.Join(many(8)...), nil, errs.Join(many(9)...))
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 17 {
		t.Errorf("%v", err)
	}
	expect.Equal(t, "lines, each text once", strings.Count(err.Error(), "\n")+1, 9)
}

func TestNoErrorsAreNil(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "of nothing", errs.Join(nil, nil, errs.Join()), nil)
}

func TestManyNamesAreCounted(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "names", errs.Names([]string{"a", "b"}).String(), `["a" "b"]`)
	if got := errs.Names(make([]string, 2000)).String(); !strings.HasSuffix(got, " and 1990 more") || len(got) > 100 {
		t.Error(got)
	}
}

func TestALongNameIsShortened(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "", "a": "a", strings.Repeat("k", 200): strings.Repeat("k", 200),
		strings.Repeat("k", 201):       strings.Repeat("k", 200) + "… (201 bytes)",
		"k" + strings.Repeat("ä", 500): "k" + strings.Repeat("ä", 99) + "… (1001 bytes)",
		strings.Repeat("\xbf", 1000):   strings.Repeat("\xbf", 196) + "… (1000 bytes)", // no rune starts anywhere
	} {
		expect.Equal(t, "short", errs.Short(name), want)
	}
	if got := errs.Names([]string{"a", strings.Repeat("k", 1<<20)}).String(); len(got) > 300 {
		t.Errorf("%d bytes", len(got))
	}
	if err := errs.TooLong("a name", strings.Repeat("k", 600), 512); !strings.HasSuffix(err.Error(), `k"… has 600 bytes, more than 512`) || len(err.Error()) > 100 {
		t.Error(err)
	}
}
