// Package troubles has only tests. Each causes one of the troubles of docs/at-3am.md on a fleet of three processes, and looks for the
// signs that its section names: log lines, metrics, the output of cacheguardctl, and the page of package admin. A sign that a test looks
// for must be in its section.
package troubles
