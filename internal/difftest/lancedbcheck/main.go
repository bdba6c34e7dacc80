//go:build lancedb

// Command lancedbcheck runs one pass over a table and has LanceDB's own Go client look at it before and after.
//
// It links the native library of lancedb-go, which its module does not carry: see the README, "The optional check".
// Usage: CGO_LDFLAGS=... go run -tags lancedb ./internal/difftest/lancedbcheck MAINTAIN TABLE.lance
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path"
	"strings"

	"github.com/lancedb/lancedb-go/pkg/contracts"
	"github.com/lancedb/lancedb-go/pkg/lancedb"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: lancedbcheck MAINTAIN TABLE.lance")
	}
	if err := check(context.Background(), os.Args[1], strings.TrimSuffix(os.Args[2], "/")); err != nil {
		log.Fatalf("lancedbcheck: %v", err)
	}
}

// check compares what LanceDB says before and after a pass of the binary maintain over the table at uri.
func check(ctx context.Context, maintain, uri string) error {
	before, err := look(ctx, uri)
	if err != nil {
		return fmt.Errorf("look before the pass: %w", err)
	}
	out, err := exec.CommandContext(ctx, maintain, "--json", uri).Output()
	if err != nil {
		return fmt.Errorf("run %s: %w", maintain, err)
	}
	var doc struct {
		Results []struct {
			After struct {
				Version uint64 `json:"version"`
				Rows    uint64 `json:"rows"`
			} `json:"after"`
		} `json:"results"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return fmt.Errorf("decode the result: %w", err)
	}
	if len(doc.Results) != 1 {
		return fmt.Errorf("result has %d datasets, want 1", len(doc.Results))
	}
	after, err := look(ctx, uri)
	if err != nil {
		return fmt.Errorf("look after the pass: %w", err)
	}
	said := doc.Results[0].After
	if after.rows != before.rows || uint64(after.rows) != said.Rows || uint64(after.version) != said.Version {
		return fmt.Errorf("before %+v, after %+v, the pass said version %d with %d rows", before, after, said.Version, said.Rows)
	}
	log.Printf("ok: %d rows, version %d -> %d", after.rows, before.version, after.version)
	return nil
}

// seen is what LanceDB says of a table.
type seen struct {
	rows    int64
	version int
}

// look opens the table at uri (path or s3://) afresh and asks for its row count and version.
func look(ctx context.Context, uri string) (_ seen, err error) {
	root, name := path.Split(uri)
	name, ok := strings.CutSuffix(name, ".lance")
	if !ok {
		return seen{}, fmt.Errorf("%s does not end in .lance", uri)
	}
	db, err := lancedb.Connect(ctx, root, &contracts.ConnectionOptions{})
	if err != nil {
		return seen{}, fmt.Errorf("connect %s: %w", root, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	table, err := db.OpenTable(ctx, name)
	if err != nil {
		return seen{}, fmt.Errorf("open table %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	rows, err := table.Count(ctx)
	if err != nil {
		return seen{}, fmt.Errorf("count rows of %s: %w", name, err)
	}
	version, err := table.Version(ctx)
	if err != nil {
		return seen{}, fmt.Errorf("ask version of %s: %w", name, err)
	}
	return seen{rows: rows, version: version}, nil
}
