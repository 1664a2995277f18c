// Fileimport imports each file of a folder once, on two hosts that see the same folder:
//
//	go run ./cookbook/fileimport
//
// One lock per file: the hosts share the work, and skip what the other one is at. The result is put in place by a
// rename, so a host that was overtaken can at worst put the same content there once more.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/interlock-go/interlock/examples/internal/recipe"
)

func main() { recipe.Main(run) }

func run(ctx context.Context, url string, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "import")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name+".in"), []byte(name), 0o600); err != nil {
			return err
		}
	}
	fleet, err := recipe.Open(ctx, url, "host-1", "host-2")
	if err != nil {
		return err
	}
	defer fleet.Close()
	err = fleet.Each(ctx, func(ctx context.Context, h recipe.Host) error {
		for _, name := range names {
			// The folder's name makes the lock's name that of this file.
			lock := h.Locks.Mutex("import:"+filepath.Base(folder)+"/"+name, nil)
			ran, err := lock.TryDo(ctx, func(ctx context.Context) error {
				return importFile(ctx, h, filepath.Join(folder, name), out)
			})
			if err != nil {
				return err // the file stays, and the next round imports it
			}
			if !ran {
				fmt.Fprintf(out, "%s: the other host has %s\n", h.Name, name)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		got, err := os.ReadFile(filepath.Join(folder, name+".out"))
		if err != nil || string(got) != string(bytes.ToUpper([]byte(name))) {
			return fmt.Errorf("%s: %q, %w", name, got, err)
		}
	}
	return nil
}

// importFile imports path.in to path.out, unless that has been done. It does nothing more once ctx has ended.
func importFile(ctx context.Context, h recipe.Host, path string, out io.Writer) error {
	_, err := os.Stat(path + ".out") // under the lock: before it the other host could still have been at it
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := os.ReadFile(path + ".in")
	if err != nil {
		return err
	}
	part := path + "." + h.Name // a name of its own, so that an overtaken host writes to nobody else's file
	if err := os.WriteFile(part, bytes.ToUpper(data), 0o600); err != nil {
		return err
	}
	if ctx.Err() != nil { // lost
		return errors.Join(context.Cause(ctx), os.Remove(part))
	}
	if err := os.Rename(part, path+".out"); err != nil {
		return err
	}
	fmt.Fprintln(out, filepath.Base(path), "imported by", h.Name)
	return nil
}
