package main

import "fmt"

// pagedPages is what a middleware.Cache shows.
type pagedPages struct {
	Name, Space               string
	Failing, Faulty, Uncached *pagesShare
}

type pagesShare struct {
	Requests, Of uint64
	Why          string
}

// last names the path of the last of failed requests, if the page does: one of an earlier version does not.
func (s *pagesShare) last() string {
	if s.Why == "" {
		return ""
	}
	return fmt.Sprintf(", the last for %q", s.Why)
}

// pagesFindings says which caches of pages have failing requests or stored errors, and which could store next to nothing, in the last minutes.
func (p *paged) pagesFindings() (all []finding) {
	for _, c := range p.Pages {
		name := "pages of " + c.Name
		if c.Space != "" {
			name += ", space " + c.Space
		}
		if s := c.Failing; s != nil {
			all = append(all, finding{Result: warning, Detail: fmt.Sprintf(
				"%s: %d of %d requests failed in the last minutes%s: the handler panics, breaks off or takes too long, Redis refuses, or clients left",
				name, s.Of, s.Requests, s.last(),
			)})
		}
		if s := c.Faulty; s != nil {
			all = append(all, finding{Result: warning, Detail: fmt.Sprintf(
				"%s: %d of %d requests got an error (500 or more) from the cache in the last minutes%s: its handler, StatusTTL or StoreErrors lets the cache store it: invalidate the page when the handler works again",
				name, s.Of, s.Requests, s.last(),
			)})
		}
		if s := c.Uncached; s != nil {
			all = append(all, finding{Result: warning, Detail: fmt.Sprintf(
				"%s: the responses to %d of %d requests could not be stored in the last minutes, most of them: %s", name, s.Of, s.Requests, s.Why,
			)})
		}
	}
	return all
}
