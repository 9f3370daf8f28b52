package main

import (
	"regexp"
	"strings"
)

// machinePath matches a path that only one machine has. The text before it must not be part of a longer path or of
// an address. The names are apart from the slashes because this file is checked too.
var machinePath = regexp.MustCompile(
	"(?:^|[\\s\"'`(\\[{<>=:,;|]|file://)" + `(/(?:work|root|home|tmp)/[\w.~$-]*)|(\.\./` + `shared)\b`)

// checkPaths finds paths of the machine that a file was written on.
func checkPaths(t tree) ([]problem, error) {
	var found []problem
	for _, file := range t.files {
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		if strings.ContainsRune(text, 0) { // not text
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if m := machinePath.FindStringSubmatch(line); m != nil {
				found = append(found, problem{file, i + 1, m[1] + m[2] + " exists on one machine only"})
			}
		}
	}
	return found, nil
}
