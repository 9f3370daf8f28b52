package send

// fewBeside is up to how many keys are compared one by one, which is faster than a look into a map.
const fewBeside = 8

// beside are keys that are read in the same request as others, each once for all of these.
type beside struct {
	keys    []string
	at      map[string]int // of the keys, when there are more than a few
	replies replies        // theirs follow the others'
	first   int            // the place of the first one; 0: there is no reply
}

// add adds keys that are not there yet.
func (b *beside) add(keys []string) {
	for _, key := range keys {
		if b.find(key) >= 0 {
			continue
		}
		if b.keys = append(b.keys, key); b.at != nil {
			b.at[key] = len(b.keys) - 1
		} else if len(b.keys) > fewBeside {
			b.at = make(map[string]int)
			for i, key := range b.keys {
				b.at[key] = i
			}
		}
	}
}

// find returns the place of a key; below 0: it is not there.
func (b *beside) find(key string) int {
	if b.at != nil {
		if i, found := b.at[key]; found {
			return i
		}
		return -1
	}
	for i := range b.keys {
		if b.keys[i] == key {
			return i
		}
	}
	return -1
}

// Beside returns what was read of a key in the request of this Read, or of its own key. Not asked: it was not read. It
// is called after Wait.
func (r *Read) Beside(key string) (raw []byte, err error, asked bool) { //nolint:revive // the error is of the read, not of this call
	if key == r.key {
		return r.Raw, r.Err, true
	}
	if r.beside == nil {
		return nil, nil, false
	}
	i := r.beside.find(key)
	switch {
	case i < 0:
		return nil, nil, false
	case r.beside.first == 0: // the whole request failed
		return nil, r.Err, true
	}
	a := r.beside.replies.of(r.beside.first + i)
	return a.raw, a.err, true
}
