package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/cacheguard/go/cacheguard"
)

var (
	_ cacheguard.Compression = (*Compression)(nil)

	both = map[string]func(int) *Compression{"zstd": Zstd, "s2": S2}
)

// document returns JSON of that size as a service has it: the names repeat, the numbers and words differ.
func document(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("a shoe for running on wet streets in the rain and on snow with a sole of rubber that holds")
	var b bytes.Buffer
	b.WriteByte('[')
	for id := 0; b.Len() < size; id++ {
		fmt.Fprintf(&b, `{"id":%d,"sku":"%08x","name":"`, 1000+id, random.Uint32())
		for range 6 {
			b.WriteString(words[random.IntN(len(words))] + " ")
		}
		fmt.Fprintf(&b, `","price_cents":%d,"stock":%d,"tags":["shoes","sale"],"updated":"2026-11-%02dT%02d:00:00Z"},`,
			random.IntN(20000), random.IntN(500), 1+random.IntN(28), random.IntN(24))
	}
	return b.Bytes()[:size]
}

// noise returns bytes that cannot be compressed.
func noise(size int) []byte {
	b, random := make([]byte, size), rand.New(rand.NewPCG(3, 4))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func TestWhatIsCompressedIsReadByBoth(t *testing.T) {
	t.Parallel()
	for name, writer := range both {
		for _, size := range []int{64, 255, 256, 1 << 10, 1 << 16, 1<<16 + 300, 3 << 20} {
			payload := document(size)
			before := bytes.Clone(payload)
			packed := writer(0).Compress(payload)
			if size >= 1<<10 && len(packed) == 0 {
				t.Fatalf("%s: %d bytes did not get smaller", name, size)
			}
			if packed == nil {
				continue
			}
			if !bytes.Equal(payload, before) {
				t.Fatalf("%s: the payload was changed", name)
			}
			for reader, read := range both {
				got, err := read(0).Decompress(writer(0).Formats()[0], packed, size)
				if err != nil || !bytes.Equal(got, payload) {
					t.Errorf("%s of %d bytes, read by %s: %d bytes, %v", name, size, reader, len(got), err)
				}
			}
		}
	}
}

func TestWhatIsShortOrDoesNotGetSmallerIsNotCompressed(t *testing.T) {
	t.Parallel()
	for name, c := range both {
		for what, payload := range map[string][]byte{"empty": {}, "short": document(1 << 10), "noise": noise(1 << 12)} {
			if packed := c(1<<10 + 1).Compress(payload); packed != nil {
				t.Errorf("%s, %s: %d bytes became %d", name, what, len(payload), len(packed))
			}
		}
		if c(1<<10).Compress(document(1<<10)) == nil {
			t.Errorf("%s: min itself was not compressed", name)
		}
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// claims are small, and claim to have a large payload, or need much memory.
func claims() map[string][]byte {
	window := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x80, 18 << 3, 100, 0, 0, 0, 1, 0, 0} // of 256 MiB, for a payload of 100 bytes
	return map[string][]byte{
		"s that claims":                            binary.AppendUvarint(nil, 256<<20),
		"z that claims":                            {0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 16, 1, 0, 0},
		"z that is skipped":                        binary.LittleEndian.AppendUint32([]byte{0x50, 0x2a, 0x4d, 0x18}, 1<<31),
		"z with a large window":                    window,
		"z with a large window behind a small one": append(Zstd(0).Compress(document(1<<10)), window...),
	}
}

// bombs are small, and claim or have a large payload.
func bombs(t *testing.T) map[string][]byte {
	const size = 32 << 20
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	all, zeros := claims(), make([]byte, size)
	all["z of zeros"] = w.EncodeAll(zeros, nil)
	all["s of zeros"] = s2.Encode(nil, zeros)
	var stream bytes.Buffer // says no size
	w.Reset(&stream)
	for range size >> 20 {
		_, _ = w.Write(zeros[:1<<20])
	}
	_ = w.Close()
	all["z without a size"] = stream.Bytes()
	small := w.EncodeAll(document(1<<10), nil)
	all["z behind a small one"] = append(bytes.Clone(small), all["z of zeros"]...)
	all["z without a size behind a small one"] = append(bytes.Clone(small), stream.Bytes()...)
	return all
}

// Not parallel: others' allocations would count.
func TestBombsAreRefusedWithoutMemory(t *testing.T) {
	const limit = 1 << 20
	for name, bomb := range bombs(t) {
		for reader, c := range both {
			c := c(0)
			_, _ = c.Decompress(formatZstd, c.Compress(document(1<<10)), limit) // has what it keeps
			var err error
			took := allocated(func() { _, err = c.Decompress(name[0], bomb, limit) })
			if err == nil {
				t.Errorf("%s, read by %s: no error", name, reader)
			}
			if took > 4*limit {
				t.Errorf("%s, read by %s: allocated %d bytes", name, reader, took)
			}
		}
	}
}

func TestTheLimitIsTheLargestThatIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range both {
		c := c(0)
		payload := document(1 << 12)
		packed := c.Compress(payload)
		if _, err := c.Decompress(c.Formats()[0], packed, len(payload)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, limit := range []int{len(payload) - 1, 0, -1} {
			if _, err := c.Decompress(c.Formats()[0], packed, limit); err == nil {
				t.Errorf("%s: no error with a limit of %d", name, limit)
			}
		}
		if _, err := c.Decompress('q', packed, 1<<20); err == nil {
			t.Errorf("%s: no error for a format that is unknown", name)
		}
	}
}

func TestAResultIsTheCallers(t *testing.T) {
	t.Parallel()
	for name, c := range both {
		c := c(0)
		first, second := document(1<<12), bytes.ToUpper(document(1<<12))
		packed := c.Compress(first)
		got, _ := c.Decompress(c.Formats()[0], packed, 1<<20)
		again := c.Compress(second)
		if other, err := c.Decompress(c.Formats()[0], again, 1<<20); err != nil || !bytes.Equal(other, second) {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := c.Decompress(c.Formats()[0], packed, 1<<20); err != nil || !bytes.Equal(now, first) || !bytes.Equal(got, first) {
			t.Errorf("%s: a later call changed what an earlier one returned: %v", name, err)
		}
	}
}

func TestACompressionIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	for _, c := range both {
		c := c(0)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for size := 1 << 10; size < 1<<17; size += 1<<14 + i {
					payload := document(size)
					got, err := c.Decompress(c.Formats()[0], c.Compress(payload), size)
					if err != nil || !bytes.Equal(got, payload) {
						t.Errorf("%d bytes: %v", size, err)
					}
				}
			})
		}
		all.Wait()
	}
}

func FuzzDecompress(f *testing.F) {
	for _, c := range both {
		f.Add(c(0).Formats()[0], c(0).Compress(document(1<<10)))
	}
	for name, claim := range claims() {
		f.Add(name[0], claim)
	}
	c := Zstd(0)
	f.Add(byte('t'), []byte("0"))
	f.Add(byte('z'), []byte("0000"))
	f.Fuzz(func(t *testing.T, format byte, packed []byte) {
		const limit = 1 << 16
		payload, err := c.Decompress(format, packed, limit)
		if err != nil {
			return
		}
		if len(payload) > limit || cap(payload) > 2*limit {
			t.Fatalf("%d bytes, with room for %d", len(payload), cap(payload))
		}
		if again := c.Compress(payload); again != nil {
			got, err := c.Decompress(formatZstd, again, len(payload))
			if err != nil || !bytes.Equal(got, payload) {
				t.Fatalf("what was read does not come back: %v", err)
			}
		}
	})
}
