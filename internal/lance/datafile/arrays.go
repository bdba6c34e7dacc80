package datafile

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/v20"
)

// around is the column of a list or struct of file version 2.0, which stands around one or more leaves. The first leaf that has
// rows writes the lists; those of the others must be the same.
type around struct {
	first *leafWriter // nil: not known yet
	list  bool
	sums  map[*leafWriter]*sum
}

// sum is what a leaf says of the lists or structs around it: their number, and a hash of the lists' lengths and nulls.
type sum struct {
	values uint64
	hash   *xxhash.Digest
}

// writeArrays writes a block to the columns of a leaf. Nothing is written where its values cannot be encoded: they may be in a smaller
// block.
func (w *Writer) writeArrays(l *leafWriter, b *encoding.Block) error {
	lists, values, err := v20.Split(b)
	if err != nil {
		return fmt.Errorf("column %d: %w", l.columns[len(l.columns)-1], err)
	}
	if values.Rows > 0 {
		if err := w.writeValues(l, values); err != nil {
			return err
		}
	}
	n := uint64(b.Rows) // values of the layer
	for i, c := range l.columns[:len(l.columns)-1] {
		list := b.Layers[len(b.Layers)-1-i].List()
		s, err := w.say(c, l, list)
		if err != nil {
			return err
		}
		s.values += n
		if !list {
			continue
		}
		s.add(lists[0])
		if w.around[c].first == l && len(lists[0].Ends) > 0 {
			e, buffers := v20.EncodeLists(lists[0])
			if err := w.page(c, urlArrayEncoding, e, buffers, len(lists[0].Ends), l.rows); err != nil {
				return err
			}
		}
		n = lists[0].Items()
		lists = lists[1:]
	}
	l.values += uint64(values.Rows)
	l.rows += uint64(b.Rows)
	return nil
}

// say is what a leaf has said so far of the lists or structs in a column around it.
func (w *Writer) say(column int, l *leafWriter, list bool) (*sum, error) {
	a := &w.around[column]
	if a.first == nil {
		*a = around{first: l, list: list, sums: map[*leafWriter]*sum{}}
	}
	if a.list != list {
		return nil, lance.Corrupt("", "column %d is one of lists and one of structs", column)
	}
	s := a.sums[l]
	if s == nil {
		s = &sum{hash: xxhash.New()}
		a.sums[l] = s
	}
	return s, nil
}

// writeValues writes a page of the column of values; it may have none.
func (w *Writer) writeValues(l *leafWriter, values *encoding.Block) error {
	c := l.columns[len(l.columns)-1]
	e, buffers, err := v20.Encode(l.t, values)
	if err != nil {
		return fmt.Errorf("encode a page of column %d: %w", c, err)
	}
	return w.page(c, urlArrayEncoding, e, buffers, values.Rows, l.rows)
}

// add hashes lists: nulls, and how many items each has.
func (s *sum) add(lists v20.Lists) {
	var scratch []byte
	var last uint64
	for i, end := range lists.Ends {
		length := end - last + 1
		if lists.Null[i] {
			length = 0
		}
		scratch, last = binary.AppendUvarint(scratch, length), end
	}
	_, _ = s.hash.Write(scratch) // never fails
}

// closeArrays writes the pages that are known only at the end: a header for each struct, and one page without values for each
// column that has no other. It checks that leaves agree on what is around them.
func (w *Writer) closeArrays() error {
	for c := range w.around {
		a := &w.around[c]
		if a.first == nil {
			continue // of values
		}
		first := a.sums[a.first]
		for _, s := range a.sums {
			if s.values != first.values || s.hash.Sum64() != first.hash.Sum64() {
				return lance.Corrupt("", "the fields below column %d differ in the lists around them", c)
			}
		}
		var err error
		switch {
		case !a.list:
			err = w.page(c, urlArrayEncoding, v20.Header(), nil, int(first.values), 0)
		case first.values == 0:
			e, buffers := v20.EncodeLists(v20.Lists{})
			err = w.page(c, urlArrayEncoding, e, buffers, 0, 0)
		}
		if err != nil {
			return err
		}
	}
	for _, l := range w.leaves {
		if l.values > 0 || l.rows == 0 {
			continue
		}
		if err := w.writeValues(l, encoding.Nulls(l.t, []encoding.Layer{encoding.NullableItem}, 0)); err != nil {
			return err
		}
	}
	return nil
}
