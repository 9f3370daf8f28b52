package codec

import (
	"fmt"
	"testing"
)

var sizes = []int{1 << 10, 16 << 10, 256 << 10}

// BenchmarkCompress reports how long compression takes, and how many bytes remain of 100.
func BenchmarkCompress(b *testing.B) {
	eachCompression(b, func(b *testing.B, c *Compression, payload []byte) {
		var packed []byte
		for b.Loop() {
			packed = c.Compress(payload)
		}
		b.ReportMetric(100*float64(len(packed))/float64(len(payload)), "%size")
	})
}

func BenchmarkDecompress(b *testing.B) {
	eachCompression(b, func(b *testing.B, c *Compression, payload []byte) {
		packed := c.Compress(payload)
		for b.Loop() {
			if _, err := c.Decompress(c.Formats()[0], packed, len(payload)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkIncompressible is what an attempt costs that buys nothing.
func BenchmarkIncompressible(b *testing.B) {
	for name, c := range both {
		b.Run(fmt.Sprintf("%s/16KiB", name), func(b *testing.B) {
			c, payload := c(0), noise(16<<10)
			for b.Loop() {
				if c.Compress(payload) != nil {
					b.Fatal("noise got smaller")
				}
			}
		})
	}
}

func eachCompression(b *testing.B, run func(*testing.B, *Compression, []byte)) {
	for _, name := range []string{"s2", "zstd"} {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				run(b, both[name](0), document(size))
			})
		}
	}
}
