// Package durable replaces small files so that a crash leaves the old one or the new one, whole.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile writes data beside path, syncs it, renames it to path and syncs the folder. Only the user may read it.
func WriteFile(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, errors.Join(err, os.Remove(temporary.Name())))
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}
