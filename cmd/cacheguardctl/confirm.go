package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// sure is part of commands that ask before they do what many notice.
type sure struct {
	Yes bool `help:"Do not ask: for scripts." short:"y"`
}

var errNotConfirmed = errors.New("nothing was done: nobody said yes, and --yes was not given")

// confirm asks at the terminal. It reads from nothing else: what a script has on its standard input is not an answer.
func (s sure) confirm(e *env, format string, args ...any) error {
	if s.Yes {
		return nil
	}
	if e.terminal == nil {
		return errNotConfirmed
	}
	question := clean(fmt.Sprintf(format, args...))
	_, _ = fmt.Fprintf(e.asks, "%s [y/N] ", question)         // a user who does not see it does not say yes
	answer, _ := bufio.NewReader(e.terminal).ReadString('\n') // without one: no
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errNotConfirmed
	}
	return nil
}

// terminal is the file if it is a terminal, or another device, such as /dev/null, which never says yes; else nil.
func terminal(f *os.File) io.Reader {
	if at, err := f.Stat(); err != nil || at.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return f
}
