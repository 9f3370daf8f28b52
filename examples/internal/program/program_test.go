package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
)

// counting is a program with two numbers, which prints them.
func counting() Program {
	var n, m int
	return Program{
		Name: "counting", About: "Counting prints two numbers.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&n, "n", 8, "a `number`")
			f.IntVar(&m, "m", 100, "another `number`")
		},
		Short: map[string]string{"n": "2", "m": "3"},
		Check: func() error {
			if n < 1 {
				return fmt.Errorf("-n: %d is less than 1", n)
			}
			return nil
		},
		Run: func(ctx context.Context, out io.Writer) error {
			if n == 13 {
				return errors.New("bad luck")
			}
			_, err := fmt.Fprint(out, n, " ", m)
			return errors.Join(err, ctx.Err())
		},
	}
}

func TestAProgramSaysHowItEnded(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code        int
		out, stderr string
	}{
		"":             {OK, "8 100", ""},
		"-n 5":         {OK, "5 100", ""},
		"-short":       {OK, "2 3", ""},
		"-short -n 8":  {OK, "8 3", ""},
		"-n 0":         {Usage, "", "counting: -n: 0 is less than 1\n"},
		"-short -n -1": {Usage, "", "counting: -n: -1 is less than 1\n"},
		"now":          {Usage, "", "counting: unexpected argument \"now\"\n"},
		"-n 13":        {Failed, "", "counting: bad luck\n"},
	} {
		var out, problems strings.Builder
		code := counting().Execute(t.Context(), strings.Fields(args), &out, &problems)
		if code != want.code || out.String() != want.out || problems.String() != want.stderr {
			t.Errorf("%q: %d, %q, %q, want %+v", args, code, out.String(), problems.String(), want)
		}
	}
}

func TestABadValueNamesItsFlag(t *testing.T) {
	t.Parallel()
	var problems strings.Builder
	code := counting().Execute(t.Context(), []string{"-n", "many"}, io.Discard, &problems)
	if code != Usage || !strings.Contains(problems.String(), "-n") {
		t.Errorf("%d, %q", code, problems.String())
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	t.Parallel()
	var help strings.Builder
	if code := counting().Execute(t.Context(), []string{"-h"}, &help, io.Discard); code != OK {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"prints two numbers", "-n number", "-m number", "-short", "REDIS_URL", "DATABASE_URL"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("no %s in the help:\n%s", want, help.String())
		}
	}
}

func TestAnInterruptedProgramSaysSo(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var problems strings.Builder
	if code := counting().Execute(ctx, nil, io.Discard, &problems); code != Interrupted {
		t.Errorf("exit code %d, want %d: %s", code, Interrupted, problems.String())
	}
}
