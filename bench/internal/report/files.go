package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// WriteTo writes the report to a directory: compare.json with every round, compare.md and the plots.
func (r *Report) WriteTo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	var tables bytes.Buffer
	if err := r.Markdown(&tables); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "compare.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "compare.md"), tables.Bytes(), 0o644),
		r.writePlots(dir),
	)
}

// Read reads a compare.json.
func Read(file string) (*Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	return r, json.Unmarshal(text, r)
}
