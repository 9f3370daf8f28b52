package model

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// notesFile has a table: script, hash of its text, what it is in the models, the function that calls it.
const notesFile = "docs/design/model.md"

// folders have the scripts that the models are about.
var folders = []string{"internal/cache/protocol/lua", "internal/cache/epoch/lua", "internal/lock/queue/lua", "mutex/lua", "internal/lock/rw/lua", "semaphore/lua"}

// note is a row of the table.
type note struct{ script, hash, models, function string }

var noteRow = regexp.MustCompile("(?m)^\\| `([^`]+\\.lua)` \\| `?([0-9a-f?]*)`? \\| (.*) \\| (.*) \\|$")

// unsaid is in the table for a script that nobody has looked at.
const unsaid = "?"

func (n note) String() string {
	return fmt.Sprintf("| `%s` | `%s` | %s | %s |", n.script, n.hash, n.models, n.function)
}

// scripts are the hashes of the scripts, by path.
func scripts(root string) (paths []string, hashes map[string]string, err error) {
	hashes = make(map[string]string)
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.lua"))
		if err != nil {
			return nil, nil, err
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, nil, err
			}
			path := folder + "/" + filepath.Base(file)
			paths, hashes[path] = append(paths, path), fmt.Sprintf("%x", sha256.Sum256(text))[:12]
		}
	}
	return paths, hashes, nil
}

func readNotes(root string) (text string, notes map[string]note, err error) {
	raw, err := os.ReadFile(filepath.Join(root, notesFile))
	if err != nil {
		return "", nil, err
	}
	notes = make(map[string]note)
	for _, row := range noteRow.FindAllStringSubmatch(string(raw), -1) {
		notes[row[1]] = note{row[1], row[2], row[3], row[4]}
	}
	return string(raw), notes, nil
}

// WriteNotes writes the hashes of the scripts as they are into the table, and adds a row for each script that has none. Root is the folder
// of the repository.
func WriteNotes(root string) error {
	text, notes, err := readNotes(root)
	if err != nil {
		return err
	}
	paths, hashes, err := scripts(root)
	if err != nil {
		return err
	}
	var rows strings.Builder
	for _, path := range paths {
		n, ok := notes[path]
		if !ok {
			n = note{script: path, models: unsaid, function: unsaid}
		}
		n.hash = hashes[path]
		rows.WriteString(n.String() + "\n")
	}
	const head = "| script | hash | in the models | function |\n|---|---|---|---|\n"
	before, rest, ok := strings.Cut(text, head)
	if !ok {
		return fmt.Errorf("%s has no table of the scripts", notesFile)
	}
	for strings.HasPrefix(rest, "|") {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return os.WriteFile(filepath.Join(root, notesFile), []byte(before+head+rows.String()+rest), 0o644)
}

var (
	labelName    = regexp.MustCompile("([a-z]+)\\.pml: ((?:`[a-zA-Z_]+`(?:, )?)+)")
	functionName = regexp.MustCompile("`(?:\\w+\\.)*(\\w+)`")
	quoted       = regexp.MustCompile("`([a-zA-Z_]+)`")
)

// CheckNotes returns what is wrong with the table: a script that has changed since somebody compared it with the models, or that is not there, a
// label that no model has, and a function that is not in the package.
func CheckNotes(root string) (problems []string, err error) {
	_, notes, err := readNotes(root)
	if err != nil {
		return nil, err
	}
	paths, hashes, err := scripts(root)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		n, ok := notes[path]
		switch {
		case !ok:
			problems = append(problems, path+": not in the table of "+notesFile)
			continue
		case n.models == unsaid || n.function == unsaid:
			problems = append(problems, path+": say what it is in the models, or why it is in none")
		case n.hash != hashes[path]:
			problems = append(problems, path+": has changed; see whether the models still say what it does, then go run ./proof/cmd/model -notes")
		}
		problems = append(problems, unknown(root, n)...)
		delete(notes, path)
	}
	for path := range notes {
		problems = append(problems, path+": is not there any more")
	}
	return problems, nil
}

// unknown are labels and functions that a row names and that do not exist.
func unknown(root string, n note) (problems []string) {
	for _, label := range labelName.FindAllStringSubmatch(n.models, -1) {
		text, err := files.ReadFile(label[1] + ".pml")
		if err != nil {
			problems = append(problems, n.script+": there is no model "+label[1])
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(label[2], -1) {
			if !regexp.MustCompile(`(?m)^(inline|proctype|#define) ` + name[1] + `\b`).Match(text) {
				problems = append(problems, fmt.Sprintf("%s: %s.pml has no %s", n.script, label[1], name[1]))
			}
		}
	}
	var source strings.Builder
	packages := []string{filepath.Dir(filepath.Dir(n.script))}
	if packages[0] == "internal/lock/rw" {
		packages = append(packages, "rwlock")
	}
	if strings.Contains(n.function, "`queue.") {
		packages = append(packages, "internal/lock/queue")
	}
	var found []string
	for _, p := range packages {
		more, _ := filepath.Glob(filepath.Join(root, p, "*.go"))
		found = append(found, more...)
	}
	for _, file := range found {
		if text, err := os.ReadFile(file); err == nil {
			source.Write(text)
		}
	}
	for _, name := range functionName.FindAllStringSubmatch(n.function, -1) {
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name[1] + `\b`).MatchString(source.String()) {
			problems = append(problems, fmt.Sprintf("%s: there is no function %s", n.script, name[1]))
		}
	}
	return problems
}
