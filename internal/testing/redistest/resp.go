package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// value is one RESP value, of either version, as it was sent.
type value struct {
	raw   []byte   // with the attributes before it
	kind  byte     // the type byte
	words []string // an aggregate's own strings: the name and the arguments of a command
}

// respReader splits a stream into values.
type respReader struct{ in *bufio.Reader }

func newRESPReader(in io.Reader) respReader { return respReader{bufio.NewReader(in)} }

// next reads one value.
func (r respReader) next() (value, error) {
	var v value
	err := r.read(&v, 0)
	return v, err
}

func (r respReader) read(v *value, depth int) error {
	line, err := r.line(v)
	if err != nil {
		return err
	}
	kind := line[0]
	if depth == 0 {
		v.kind = kind
	}
	switch kind {
	case '+', '-', ':', '_', '#', ',', '(':
		if kind == '+' && depth == 1 {
			v.words = append(v.words, line[1:])
		}
		return nil
	case '$', '!', '=', '*', '~', '>', '%', '|':
	default:
		return fmt.Errorf("redistest: %q is not RESP", line)
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil {
		return fmt.Errorf("redistest: length in RESP: %w", err)
	}
	switch kind {
	case '$', '!', '=':
		return r.blob(v, n, depth)
	case '%':
		return r.elements(v, 2*n, depth)
	case '|':
		if err := r.elements(v, 2*n, depth+1); err != nil {
			return err
		}
		return r.read(v, depth) // attributes belong to the value after them
	default:
		return r.elements(v, n, depth)
	}
}

// elements reads the elements of an aggregate; a null array has -1 of them.
func (r respReader) elements(v *value, n, depth int) error {
	for range n {
		if err := r.read(v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// blob reads a string of n bytes; a null has -1.
func (r respReader) blob(v *value, n, depth int) error {
	if n < 0 {
		return nil
	}
	start := len(v.raw)
	v.raw = append(v.raw, make([]byte, n+2)...)
	if _, err := io.ReadFull(r.in, v.raw[start:]); err != nil {
		return err
	}
	if depth == 1 {
		v.words = append(v.words, string(v.raw[start:start+n]))
	}
	return nil
}

// line reads a line, which is never empty, and returns it without its end.
func (r respReader) line(v *value) (string, error) {
	line, err := r.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return "", errors.New("redistest: not a line of RESP")
	}
	v.raw = append(v.raw, line...)
	return line[:len(line)-2], nil
}
