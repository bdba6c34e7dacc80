//go:build oracle

package difftest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Differences names all that Same does not allow.
func Differences(before, after map[string]Table) []string {
	var found []string
	if a, b := slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)); !slices.Equal(a, b) {
		return []string{fmt.Sprintf("datasets were %v, are %v", a, b)}
	}
	for name, b := range before {
		for _, difference := range tableDifferences(b, after[name]) {
			found = append(found, name+": "+difference)
		}
	}
	return found
}

func tableDifferences(before, after Table) []string {
	var found []string
	differ := func(what string, b, a any) { found = append(found, fmt.Sprintf("%s: was %v, is %v", what, b, a)) }
	if before.Rows != after.Rows {
		differ("rows", before.Rows, after.Rows)
	}
	if before.Bag != after.Bag {
		differ("hash of the rows", before.Bag, after.Bag)
	}
	if before.Schema != after.Schema {
		differ("schema", before.Schema, after.Schema)
	}
	if !maps.Equal(before.Config, after.Config) {
		differ("config", before.Config, after.Config)
	}
	if !maps.Equal(before.Answers, after.Answers) {
		differ("answers", before.Answers, after.Answers)
	}
	if !maps.Equal(before.Blobs, after.Blobs) {
		differ("blobs", before.Blobs, after.Blobs)
	}
	if !slices.Equal(before.Indices, after.Indices) {
		differ("indices", before.Indices, after.Indices)
	}
	if !sameJSON(before.Tags, after.Tags) {
		differ("tags", before.Tags, after.Tags)
	}
	if !sameJSON(before.Branches, after.Branches) {
		differ("branches", before.Branches, after.Branches)
	}
	if after.Version < before.Version {
		differ("version", before.Version, after.Version)
	}
	return append(found, versionDifferences(before, after)...)
}

func versionDifferences(before, after Table) []string {
	var found []string
	known := map[uint64]Version{}
	for _, v := range before.Versions {
		known[v.Number] = v
	}
	for _, v := range after.Versions {
		old, ok := known[v.Number]
		if !ok && v.Number <= before.Version {
			found = append(found, fmt.Sprintf("version %d was not there before", v.Number))
		}
		if v.Rows != nil && *v.Rows != *v.Scan {
			found = append(found, fmt.Sprintf("version %d counts %d rows and scans %d", v.Number, *v.Rows, *v.Scan))
		}
		if ok && old.Rows != nil && v.Rows != nil && *old.Rows != *v.Rows {
			found = append(found, fmt.Sprintf("version %d had %d rows, has %d", v.Number, *old.Rows, *v.Rows))
		}
	}
	return found
}

func sameJSON(a, b map[string]json.RawMessage) bool {
	return maps.EqualFunc(a, b, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}
