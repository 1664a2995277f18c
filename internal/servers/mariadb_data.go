package servers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// mariaDBInstallers are the program that makes a data folder, beside which it looks for its own.
var mariaDBInstallers = []string{
	"mariadb-install-db", "/usr/bin/mariadb-install-db", "/usr/local/bin/mariadb-install-db",
}

// mariaDBImage is a data folder as it is before the first start, packed. Making one takes longer than starting the
// server, so each process makes one only. It is a global variable because nothing else lasts as long as the process.
var mariaDBImage struct {
	sync.Mutex // held while it is made
	packed     []byte
}

// mariaDBPrepare fills the data folder of s, and runs sql in it.
func mariaDBPrepare(ctx context.Context, s Site, sql []string) error {
	packed, err := mariaDBPacked(ctx, s)
	if err != nil {
		return err
	}
	if err := unpack(packed, mariaDBData(s)); err != nil {
		return err
	}
	if len(sql) == 0 {
		return nil
	}
	return mariaDBBootstrap(ctx, s, sql)
}

// mariaDBPacked returns the image, and makes it in the folder of s if this is the first server.
func mariaDBPacked(ctx context.Context, s Site) ([]byte, error) {
	mariaDBImage.Lock()
	defer mariaDBImage.Unlock()
	if mariaDBImage.packed != nil {
		return mariaDBImage.packed, nil
	}
	made := Site{Binary: s.Binary, Dir: filepath.Join(s.Dir, "first"), Host: s.Host, Ports: s.Ports}
	defer os.RemoveAll(made.Dir)
	if err := mariaDBInstall(ctx, mariaDBData(made)); err != nil {
		return nil, err
	}
	if err := mariaDBBootstrap(ctx, made, []string{"CREATE DATABASE " + MariaDBDatabase + ";"}); err != nil {
		return nil, err
	}
	packed, err := pack(mariaDBData(made))
	if err == nil {
		mariaDBImage.packed = packed
	}
	return packed, err
}

// mariaDBInstall makes a data folder with the server's own tables, whose user root needs no password.
func mariaDBInstall(ctx context.Context, data string) error {
	installer, err := "", error(nil)
	for _, name := range mariaDBInstallers {
		if installer, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	args := append([]string{
		"--no-defaults", "--datadir=" + data, "--auth-root-authentication-method=normal", "--skip-test-db",
		"--skip-name-resolve", "--force",
	}, mariaDBSmall...)
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, installer, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", installer, err, out)
	}
	return nil
}

// mariaDBBootstrap runs SQL in a data folder whose server does not run.
func mariaDBBootstrap(ctx context.Context, s Site, sql []string) error {
	args := append([]string{"--no-defaults", "--bootstrap", "--datadir=" + mariaDBData(s)}, mariaDBSmall...)
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	cmd := exec.CommandContext(ctx, s.Binary, args...)
	// A bootstrap begins without the tables of users, and reads a statement a line.
	cmd.Stdin = strings.NewReader("USE mysql;\nFLUSH PRIVILEGES;\n" + strings.Join(sql, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err == nil && bytes.Contains(out, []byte("ERROR: ")) { // of a statement: the program goes on
		err = errors.New("a statement failed")
	}
	if err != nil {
		return fmt.Errorf("running %q before the start: %w: %s", sql, err, out)
	}
	return nil
}

// pack returns a folder's files.
func pack(dir string) ([]byte, error) {
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.BestSpeed) // most of the files is zeros
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(zip)
	err = errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), zip.Close())
	return b.Bytes(), err
}

// unpack fills a folder with what pack has returned.
func unpack(packed []byte, dir string) error {
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	r := tar.NewReader(zip)
	for {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(head.Name))
		if head.FileInfo().IsDir() {
			if err := os.MkdirAll(path, 0o700); err != nil {
				return err
			}
			continue
		}
		if err := unpackFile(r, path); err != nil {
			return err
		}
	}
}

func unpackFile(r io.Reader, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
