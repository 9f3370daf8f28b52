package main

import "fmt"

// pagedPages is what a middleware.Cache shows.
type pagedPages struct {
	Name, Space       string
	Failing, Uncached *struct {
		Requests, Of uint64
		Why          string
	}
}

// pagesFindings says which caches of pages have failing requests, and which could store next to nothing, in the last minutes.
func (p *paged) pagesFindings() (all []finding) {
	for _, c := range p.Pages {
		name := "pages of " + c.Name
		if c.Space != "" {
			name += ", space " + c.Space
		}
		if s := c.Failing; s != nil {
			all = append(all, finding{Result: warning, Detail: fmt.Sprintf(
				"%s: %d of %d requests failed in the last minutes: the handler panics, breaks off or takes too long, Redis refuses, or clients left", name, s.Of, s.Requests,
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
