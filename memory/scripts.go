package memory

import (
	"crypto/sha1" //nolint:gosec // the name Redis gives a script is its SHA-1
	"encoding/hex"
	"strings"
)

// function is what a script does, in Go. It has the name of the script's file.
type function func(r *run, keys, args []string) any

// eval runs a script that came by its text.
func eval(r *run, args []string) any {
	sum := sha1.Sum([]byte(args[0])) //nolint:gosec // see the import
	sha := hex.EncodeToString(sum[:])
	if _, known := r.engine.scripts[sha]; !known {
		s, is := ported[essence(args[0])]
		if !is {
			return refusal("ERR package memory does not know the script, nor any of another version of cacheguard: " + title(args[0]))
		}
		r.engine.scripts[sha] = s.named()
	}
	return evalsha(r, append([]string{sha}, args[1:]...))
}

// evalsha runs one that has come before.
func evalsha(r *run, args []string) any {
	n := r.integer(args[1])
	if r.err != nil || n < 0 || n > int64(len(args)-2) {
		return errInteger
	}
	does, known := r.engine.scripts[strings.ToLower(args[0])]
	if !known {
		return refusal("NOSCRIPT No matching script. Please use EVAL.")
	}
	return does(r, args[2:2+n], args[2+n:])
}

// essence is a hash of what a script says, without comments, and without the white space around lines.
func essence(source string) string {
	sum := sha1.New() //nolint:gosec // nobody has an interest in another script with this hash
	for line := range strings.Lines(source) {
		code, _, _ := strings.Cut(line, " -- ")
		if code = strings.TrimSpace(code); code != "" && !strings.HasPrefix(code, "--") {
			sum.Write([]byte(code + "\n"))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:10])
}

// title is what a script says first.
func title(source string) string {
	for line := range strings.Lines(source) {
		if text := strings.TrimSpace(line); text != "" {
			return text[:min(len(text), 100)]
		}
	}
	return "an empty one"
}

// entry is a script by its name.
type entry struct {
	name string
	run  function
}

// named tells tests which script runs.
func (e entry) named() function {
	return func(r *run, keys, args []string) any {
		if r.engine.planted != nil {
			r.engine.planted(e.name, r)
		}
		return e.run(r, keys, args)
	}
}
