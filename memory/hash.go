package memory

import "slices"

// pair is a field of a hash.
type pair struct{ field, value string }

// hash is fields in the order in which they came. Most have a few; those with more are found by an index.
type hash struct {
	pairs []pair
	index map[string]int // of pairs; nil: they are few
	bytes int64
}

const few = 24

func (h *hash) find(field string) int {
	if h.index != nil {
		if i, there := h.index[field]; there {
			return i
		}
		return -1
	}
	return slices.IndexFunc(h.pairs, func(p pair) bool { return p.field == field })
}

func (h *hash) get(field string) (value string, there bool) {
	if i := h.find(field); i >= 0 {
		return h.pairs[i].value, true
	}
	return "", false
}

// set returns whether the field is new.
func (h *hash) set(field, value string) bool {
	if i := h.find(field); i >= 0 {
		h.bytes += int64(len(value) - len(h.pairs[i].value))
		h.pairs[i].value = value
		return false
	}
	h.pairs = append(h.pairs, pair{field, value})
	h.bytes += perField + int64(len(field)+len(value))
	if h.index != nil {
		h.index[field] = len(h.pairs) - 1
	} else if len(h.pairs) > few {
		h.reindex()
	}
	return true
}

// remove reports whether the field was there. The last field takes its place in a large hash, whose order means nothing.
func (h *hash) remove(field string) bool {
	i := h.find(field)
	if i < 0 {
		return false
	}
	h.bytes -= perField + int64(len(field)+len(h.pairs[i].value))
	if h.index == nil {
		h.pairs = slices.Delete(h.pairs, i, i+1)
		return true
	}
	last := len(h.pairs) - 1
	h.pairs[i] = h.pairs[last]
	h.index[h.pairs[i].field] = i
	h.pairs[last] = pair{}
	h.pairs = h.pairs[:last]
	delete(h.index, field)
	if last <= few/2 {
		h.index = nil
	}
	return true
}

func (h *hash) reindex() {
	h.index = make(map[string]int, len(h.pairs))
	for i, p := range h.pairs {
		h.index[p.field] = i
	}
}
