package day

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Prices are what one of each operation costs a Redis server, in microseconds: the table unit-costs of a report of `compare -scale`.
type Prices struct {
	Lone, Probe, Idle float64 // Idle: of a second in which nothing happens
	Few, Many         Crowd   // of 100 and of 1,000 instances at once
}

// Crowd is what each of many costs.
type Crowd struct{ Get, Acquire, Publish, Write float64 }

// ReadPrices reads compare.md.
func ReadPrices(file string) (p Prices, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return p, err
	}
	cells := unitCosts(string(text))
	for _, of := range []struct {
		row, column string
		price       *float64
	}{
		{"alone", "lone", &p.Lone}, {"alone", "probe", &p.Probe}, {"alone", "idle", &p.Idle},
		{"of few", "GET", &p.Few.Get}, {"of few", "acquire", &p.Few.Acquire}, {"of few", "publish", &p.Few.Publish}, {"of few", "write", &p.Few.Write},
		{"of many", "GET", &p.Many.Get}, {"of many", "acquire", &p.Many.Acquire}, {"of many", "publish", &p.Many.Publish}, {"of many", "write", &p.Many.Write},
	} {
		if *of.price, err = price(cells[of.row][of.column]); err != nil {
			return Prices{}, fmt.Errorf("%s: unit-costs: %q, %s: %w", file, of.row, of.column, err)
		}
	}
	return p, nil
}

// unitCosts are the cells of the table, by row and by column without its unit.
func unitCosts(text string) map[string]map[string]string {
	rows := make(map[string]map[string]string)
	var heads []string
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch name := strings.Trim(cells[0], " *"); {
		case strings.Contains(line, "| RTT, µs |"):
			heads = cells
		case heads != nil && (name == "alone" || name == "of few" || name == "of many") && rows[name] == nil:
			rows[name] = make(map[string]string)
			for i, cell := range cells[:min(len(cells), len(heads))] {
				head, _, _ := strings.Cut(strings.TrimSpace(heads[i]), ",")
				rows[name][head] = cell
			}
		}
	}
	return rows
}

var errNoPrice = errors.New("there is none")

// price is the median in a cell, such as "12 k (11 k–13 k)" (report.Number).
func price(cell string) (float64, error) {
	words := strings.Fields(cell)
	if len(words) == 0 {
		return 0, errNoPrice
	}
	x, err := strconv.ParseFloat(words[0], 64)
	switch {
	case err != nil:
		return 0, err
	case x <= 0 || math.IsInf(x, 0) || math.IsNaN(x):
		return 0, fmt.Errorf("%v is no price", x)
	case len(words) > 1 && words[1] == "k":
		x *= 1e3
	case len(words) > 1 && words[1] == "M":
		x *= 1e6
	}
	return x, nil
}

// each is what operations cost the nodes of a large fleet, in seconds.
type each struct {
	get    float64
	miss   float64 // of the acquire and the fill of a load, each half of both
	wait   float64 // of an instance that waits: acquire, publish and write; its read is a get
	permit float64 // of one of the two requests that a permit takes
	script float64 // of an invalidation
	idle   float64 // of a node, in a second, whatever happens
}

// What a message on a cluster's bus costs, in microseconds: bench/results/scale/bus.txt.
const (
	sending   = 0.45 // for each other node
	receiving = 1.4
	pause     = 3 // seconds between two probes of an inbox
)

// in is what they cost in the plan: time grows with the logarithm of the number of instances, as bench/SCALE.md has it.
func (p Prices) in(plan Plan) each {
	instances, nodes := float64(plan.Instances), float64(plan.Nodes)
	share := max(0, math.Log10(instances/100))
	grown := func(few, many float64) float64 { return few + max(many-few, 0)*share }
	get, acquire, bus := grown(p.Few.Get, p.Many.Get), grown(p.Few.Acquire, p.Many.Acquire), (nodes-1)*(sending+receiving)
	script := acquire - get // acquire was measured with the read of the epochs that one who waits sends beside it
	e := each{
		get: get, miss: (p.Lone - p.Few.Get) / 2, permit: script, script: script,
		wait: acquire + grown(p.Few.Publish, p.Many.Publish) + grown(p.Few.Write, p.Many.Write) + bus,
		idle: p.Idle + instances/pause/nodes*(p.Probe+bus),
	}
	for _, price := range []*float64{&e.get, &e.miss, &e.wait, &e.permit, &e.script, &e.idle} {
		*price /= 1e6
	}
	return e
}

func (e each) invalidate(byHand bool) float64 {
	if byHand {
		return e.get // DEL
	}
	return e.script
}
