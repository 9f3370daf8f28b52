// Package troubles has tests alone: each makes one of the troubles of docs/at-3am.md on a fleet of three processes, and looks for the
// signs that the section about it names: lines of logs, metrics, what cacheguardctl says, and what the page of package admin shows. A sign
// that a test looks for must be in its section.
package troubles
