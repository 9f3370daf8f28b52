// Package proof is the module that proves, where bench measures: models searched by SPIN (model), a simulated fleet (sim), histories
// judged for linearizability (histories), databases under kills (consistency) and processes that are disturbed (chaos).
package proof
