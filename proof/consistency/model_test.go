package consistency

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// promise is what Update promises: when it has returned nil, no Get returns an older version. An Update that failed, or whose process died,
// promises nothing.
var promise = model(func(version int64, e event) bool { return e.kind == "updated" || e.version >= version })

// linearizable is more: each Get returns the latest version, and versions come one after the other.
var linearizable = model(func(version int64, e event) bool {
	return e.kind == "updated" && e.version == version+1 || e.kind == "get" && e.version == version
})

// model has a version for each key, from 1 on. allowed says what may happen to each.
func model(allowed func(version int64, e event) bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(1) },
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, keys)
			for _, op := range history {
				k := op.Input.(event).key
				parts[k] = append(parts[k], op)
			}
			return parts
		},
		Step: func(before, input, _ any) (bool, any) {
			version, e := before.(int64), input.(event)
			if !allowed(version, e) {
				return false, version
			}
			if e.kind == "updated" {
				version = max(version, e.version)
			}
			return true, version
		},
	}
}

// check makes porcupine look for an order of what happened that the model allows.
func check(m porcupine.Model, history []event) porcupine.CheckResult {
	var operations []porcupine.Operation
	for _, e := range telling(history) {
		if e.kind == "get" || e.kind == "updated" {
			operations = append(operations, porcupine.Operation{Input: e, Call: e.called, Return: e.returned})
		}
	}
	return porcupine.CheckOperationsTimeout(m, operations, time.Minute)
}

// TestBrokenPromisesAreFound makes sure that the checks can say no.
func TestBrokenPromisesAreFound(t *testing.T) {
	update := event{"updated", 0, 0, 2, 10, 20}
	for name, test := range map[string]struct {
		got          event
		stale        int
		promise, all porcupine.CheckResult
	}{
		"old, after":  {event{"get", 0, 0, 1, 21, 22}, 1, porcupine.Illegal, porcupine.Illegal},
		"old, beside": {event{"get", 0, 0, 1, 12, 30}, 0, porcupine.Ok, porcupine.Ok},
		"back again":  {event{"get", 0, 0, 1, 14, 30}, 0, porcupine.Ok, porcupine.Illegal},
		"new, after":  {event{"get", 0, 0, 2, 21, 22}, 0, porcupine.Ok, porcupine.Ok},
		"new, before": {event{"get", 0, 0, 2, 1, 9}, 0, porcupine.Ok, porcupine.Illegal},
		"other key":   {event{"get", 0, 1, 1, 21, 22}, 0, porcupine.Ok, porcupine.Ok},
	} {
		history := []event{{"get", 0, 0, 2, 12, 13}, update, test.got}
		if got := len(stale(history)); got != test.stale {
			t.Errorf("%s: %d stale", name, got)
		}
		if got := check(promise, history); got != test.promise {
			t.Errorf("%s: the promise: %s", name, got)
		}
		if got := check(linearizable, history); got != test.all {
			t.Errorf("%s: linearizable: %s", name, got)
		}
	}
}
