package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// suite is a copy of the test suite.
type suite struct{ dir string }

// check is one test of the suite, as far as the score depends on it.
type check struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Kind        string   `json:"kind"` // required, which is the default, optimal, or check
	DependsOn   []string `json:"depends_on"`
	BrowserOnly bool     `json:"browser_only"`
	section     string
}

// checks lists the tests.
func (s suite) checks(ctx context.Context) ([]check, error) {
	const list = `import tests from './tests/index.mjs'; console.log(JSON.stringify(tests))`
	out, err := s.node(ctx, nil, "--input-type=module", "-e", list)
	if err != nil {
		return nil, err
	}
	var sections []struct {
		Name  string  `json:"name"`
		Tests []check `json:"tests"`
	}
	if err := json.Unmarshal(out, &sections); err != nil {
		return nil, fmt.Errorf("the suite's list of tests: %w", err)
	}
	var all []check
	for _, section := range sections {
		for _, c := range section.Tests {
			c.section = section.Name
			if c.Kind == "" {
				c.Kind = required
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// serve runs the suite's server, the origin, on the port until ctx ends. Its end is sent to the channel.
func (s suite) serve(ctx context.Context, port int) (<-chan error, error) {
	env := []string{
		"npm_config_protocol=http", "npm_config_port=" + strconv.Itoa(port), "npm_config_pidfile=" + os.DevNull,
	}
	cmd := s.command(ctx, env, "--no-warnings", s.script("server/server.mjs"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { // owner: measure; stop: ctx; joined by receiving
		defer close(ended)
		ended <- cmd.Wait()
	}()
	return ended, nil
}

// ask runs the suite's client against the cache at base.
func (s suite) ask(ctx context.Context, base string) (map[string]json.RawMessage, error) {
	out, err := s.node(ctx, []string{"npm_config_base=" + base, "npm_package_config_id="}, "--no-warnings", s.script("cli.mjs"))
	if err != nil {
		return nil, err
	}
	results := make(map[string]json.RawMessage)
	if err := json.Unmarshal(out, &results); err != nil {
		return nil, fmt.Errorf("the suite's results: %w", err)
	}
	return results, nil
}

// script is where a script of the suite is: older editions have no directory for them.
func (s suite) script(name string) string {
	if _, err := os.Stat(filepath.Join(s.dir, "test-engine")); err == nil {
		return filepath.Join("test-engine", name)
	}
	return name
}

func (s suite) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), env...)
	return cmd
}

// node runs a script of the suite to its end, and returns what it prints.
func (s suite) node(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := s.command(ctx, env, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("node %s: %w: %s", args[len(args)-1], err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), nil
}
