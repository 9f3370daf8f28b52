package main

import (
	"errors"
	"fmt"
	"time"
)

type feedReport struct{ asked }

// report is what a page shows of a Report of package cdc. Durations are in seconds.
type report struct {
	Instance string     `json:"instance"`
	Name     string     `json:"name"`
	Rows     uint64     `json:"rows"`
	Skipped  uint64     `json:"skipped"`
	Failed   uint64     `json:"failed"`
	P50      float64    `json:"p50"`
	P99      float64    `json:"p99"`
	Longest  float64    `json:"longest"`
	After    []looks    `json:"after"`
	Old      []oldValue `json:"old"`
}

type looks struct {
	After      float64 `json:"after"`
	Reads      uint64  `json:"reads"`
	Old        uint64  `json:"old"`
	PerMillion float64 `json:"old_per_million"`
}

type oldValue struct {
	Table     string   `json:"table"`
	Key       string   `json:"key"`
	Committed string   `json:"committed"`
	After     float64  `json:"after"`
	Why       string   `json:"why"`
	Epochs    []string `json:"epochs"`
}

// shownReports are the reports of all instances. Only instances that read have looked at anything.
type shownReports struct {
	Reports []report `json:"reports"`
}

func (s shownReports) rows() (rows [][]string) {
	for _, r := range s.Reports {
		rows = append(rows, []string{fmt.Sprintf("%s on %s: %d rows were looked at, %d were not, %d looks failed", r.Name, r.Instance, r.Rows, r.Skipped, r.Failed)})
		if r.Rows == 0 {
			continue
		}
		rows = append(rows, []string{"  consistent", fmt.Sprintf("p50 %s, p99 %s, longest %s after the commit", short(r.P50), short(r.P99), short(r.Longest))})
		for _, l := range r.After {
			rows = append(rows, []string{"  after " + seconds(l.After), fmt.Sprintf("%d of %d reads were old, %.0f of a million", l.Old, l.Reads, l.PerMillion)})
		}
		for _, o := range r.Old {
			rows = append(rows, []string{"  old", fmt.Sprintf("%s of %s, committed %s, old after %s: %s", o.Key, o.Table, o.Committed, seconds(o.After), o.Why)})
		}
	}
	return rows
}

// Run is called by kong.
func (c *feedReport) Run(e *env) error {
	s := shownReports{Reports: []report{}}
	var without []error
	err := c.each(e, func(p *paged) {
		if len(p.Reports) == 0 {
			without = append(without, fmt.Errorf("there is no report on %s (admin.Config.Reports)", p.instance()))
		}
		for _, r := range p.Reports {
			r.Instance = p.instance()
			s.Reports = append(s.Reports, r)
		}
	})
	if len(c.Page) == 0 {
		return err
	}
	if printErr := e.out.print(s); printErr != nil {
		return printErr
	}
	return errors.Join(append(without, err)...)
}

// short is a short duration, for people.
func short(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Microsecond).String()
}
