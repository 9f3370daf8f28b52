package day

import (
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
	rows := make(map[string]map[string]float64)
	var heads []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch name := strings.Trim(cells[0], " *"); {
		case strings.Contains(line, "| RTT, µs |"):
			heads = cells
		case heads != nil && (name == "alone" || name == "of few" || name == "of many") && rows[name] == nil:
			rows[name] = make(map[string]float64)
			for i, cell := range cells[:len(heads)] {
				head, _, _ := strings.Cut(strings.TrimSpace(heads[i]), ",")
				if first, _, _ := strings.Cut(strings.TrimSpace(cell), " "); i > 0 && first != "" {
					if rows[name][head], err = strconv.ParseFloat(first, 64); err != nil {
						return p, fmt.Errorf("%s: %w", file, err)
					}
				}
			}
		}
	}
	crowd := func(of string) Crowd {
		return Crowd{Get: rows[of]["GET"], Acquire: rows[of]["acquire"], Publish: rows[of]["publish"], Write: rows[of]["write"]}
	}
	p = Prices{Lone: rows["alone"]["lone"], Probe: rows["alone"]["probe"], Idle: rows["alone"]["idle"], Few: crowd("of few"), Many: crowd("of many")}
	if p.Lone == 0 || p.Few.Get == 0 || p.Many.Write == 0 {
		return p, fmt.Errorf("%s has no table of unit-costs", file)
	}
	return p, nil
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
	acquire, bus := grown(p.Few.Acquire, p.Many.Acquire), (nodes-1)*(sending+receiving)
	e := each{
		get: grown(p.Few.Get, p.Many.Get), miss: (p.Lone - p.Few.Get) / 2, permit: acquire, script: acquire,
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
