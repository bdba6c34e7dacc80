package v21_test

import (
	"testing"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/encoding/v21"
)

// BenchmarkPage encodes and decodes pages of some MiB and reports how large they become.
func BenchmarkPage(b *testing.B) {
	for _, c := range []struct {
		name  string
		shape encodingtest.Shape
		rows  int
	}{
		{"int64", encodingtest.Random, 500_000},
		{"int64", encodingtest.Small, 500_000},
		{"int64", encodingtest.Few, 500_000},
		{"utf8", encodingtest.Random, 200_000},
		{"utf8", encodingtest.Words, 200_000},
		{"utf8", encodingtest.Few, 500_000},
		{"utf8", encodingtest.Long, 5_000},
		{"vector384", encodingtest.Random, 5_000},
	} {
		typ := encodingtest.Types()[c.name]
		block := encodingtest.Block(typ, c.shape, c.rows, 0.1, false, 1)
		size := encodingtest.Size(typ, block)
		layout, buffers, err := v21.Encode(typ, block, 2)
		if err != nil {
			b.Fatal(err)
		}
		encoded := 0
		for _, buffer := range buffers {
			encoded += len(buffer)
		}
		run := func(name string, step func() error) {
			b.Run(c.name+"/"+string(c.shape)+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportMetric(float64(encoded)/float64(size), "of-plain")
				b.ReportAllocs()
				for b.Loop() {
					if err := step(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("encode", func() error {
			_, _, err := v21.Encode(typ, block, 2)
			return err
		})
		run("decode", func() error {
			_, err := v21.Decode(typ, layout, buffers, block.Rows, 2)
			return err
		})
		hash := encoding.NewHasher(typ)
		run("hash", func() error {
			hash.Add(block)
			return nil
		})
	}
}
