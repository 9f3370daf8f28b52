package segment

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/cacheguard/go/internal/redis/script"
)

// move is of units from one segment to another.
type move struct {
	id       string
	from, to int
	units    int64
}

// gathering returns the moves that bring units to a segment, as many of them as there are, from the others, the richest
// first.
func (s *snapshot) gathering(to int, units int64) []move {
	left := append([]int64(nil), s.left...)
	left[to] = 0
	var moves []move
	for units > 0 {
		from := (&snapshot{left: left}).richest()
		m := move{id: rand.Text(), from: from, to: to, units: min(units, left[from])}
		if m.units == 0 {
			break
		}
		left[from] = 0
		units -= m.units
		moves = append(moves, m)
	}
	return moves
}

// levelling returns the moves that give each segment the same, within one unit.
func (s *snapshot) levelling() []move {
	n, total := int64(len(s.left)), s.total()
	surplus := make([]int64, n) // of each segment; below 0: it lacks units
	for i, left := range s.left {
		surplus[i] = left - total/n
		if int64(i) < total%n {
			surplus[i]--
		}
	}
	var moves []move
	from, to := 0, 0
	for {
		for from < len(surplus) && surplus[from] <= 0 {
			from++
		}
		for to < len(surplus) && surplus[to] >= 0 {
			to++
		}
		if from == len(surplus) || to == len(surplus) {
			return moves
		}
		m := move{id: rand.Text(), from: from, to: to, units: min(surplus[from], -surplus[to])}
		surplus[from] -= m.units
		surplus[to] += m.units
		moves = append(moves, m)
	}
}

// carryOut makes the moves, each of fewer units if its segment has not got as many any more.
func (c *Counter) carryOut(ctx context.Context, name, until string, moves []move) error {
	calls := make([]script.Call, len(moves))
	for i := range moves {
		calls[i] = moves[i].sending(c.key(name, moves[i].from))
	}
	replies, err := c.pipelined(ctx, calls)
	if err != nil {
		return err // the next look completes what was sent
	}
	var sent []move
	for i, units := range replies {
		if units > 0 {
			moves[i].units = units
			sent = append(sent, moves[i])
		}
	}
	return c.complete(ctx, name, until, sent)
}

// complete lets what is on its way arrive. Several may do this for the same moves.
func (c *Counter) complete(ctx context.Context, name, until string, moves []move) error {
	calls := make([]script.Call, len(moves))
	for i := range moves {
		calls[i] = moves[i].arriving(c.key(name, moves[i].to), until)
	}
	replies, err := c.pipelined(ctx, calls)
	if err != nil {
		return err
	}
	for i, reply := range replies {
		if reply != replyDone {
			return fmt.Errorf("units for segment %d cannot arrive: reply %d", moves[i].to, reply)
		}
	}
	return c.forget(ctx, name, moves)
}

// forget removes the notes of moves whose units have arrived.
func (c *Counter) forget(ctx context.Context, name string, moves []move) error {
	if len(moves) == 0 {
		return nil
	}
	calls := make([]script.Call, len(moves))
	for i, m := range moves {
		calls[i] = script.Call{Script: hdel, Keys: []string{c.key(name, m.from)}, Args: []any{"to:" + m.id}}
	}
	_, err := c.askAll(ctx, calls)
	return err
}

// pipelined runs the calls in one round trip. It returns their replies, or an error if any of them has one.
func (c *Counter) pipelined(ctx context.Context, calls []script.Call) ([]int64, error) {
	answers, err := c.askAll(ctx, calls)
	replies := make([]int64, len(answers))
	for i := 0; i < len(answers) && err == nil; i++ {
		replies[i], err = answers[i].Int64()
	}
	return replies, err
}
