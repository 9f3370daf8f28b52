package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf16"
)

// printer prints the result of a command.
type printer struct {
	to   io.Writer
	json bool

	printed bool
}

// result is what a command has to say.
type result interface {
	// rows are the lines of text, in columns.
	rows() [][]string
}

func (p *printer) print(r result) error {
	p.printed = true
	if p.json {
		return p.printJSON(r)
	}
	w := tabwriter.NewWriter(p.to, 0, 0, 2, ' ', 0)
	for _, row := range r.rows() {
		for i := range row {
			row[i] = clean(row[i])
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t")) // Flush says it
	}
	return w.Flush()
}

// printJSON prints an object on a line, with everything escaped that a terminal might obey.
func (p *printer) printJSON(r result) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, c := range string(raw) {
		switch {
		case strconv.IsPrint(c):
			out.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, c)
		}
	}
	out.WriteByte('\n')
	_, err = out.WriteTo(p.to)
	return err
}

// clean escapes what a terminal might obey, and what would look like another cell. Quoted text is as in Go.
func clean(s string) string {
	quoted := strconv.Quote(s)
	if quoted[1:len(quoted)-1] == s || strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) == s && !strings.HasPrefix(s, `"`) {
		return s
	}
	return quoted
}

// complain prints an error, and returns the code.
func complain(to io.Writer, err error, code int) int {
	for line := range strings.Lines(err.Error()) {
		_, _ = fmt.Fprintln(to, "cacheguardctl: "+clean(strings.TrimSuffix(line, "\n"))) // there is nobody to tell
	}
	return code
}
