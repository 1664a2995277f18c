//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// What "interlock doctor" says about a folder. diagnose_unix.go and diagnose_windows.go have the checks.

// Diagnose judges the folder: whether this process can write it, whether a lock of the system excludes there, and what
// else is known of it, as the file system, its space, and how waits are done. It tries the lock on a file of its own,
// which it removes. It takes no lock of others and changes nothing. With Options.ReadOnly it makes no file: it judges
// whether this process can read the folder, and tries no lock.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	checks := d.checks()
	if d.looks {
		checks = d.lookingChecks()
	}
	if _, err := os.Stat(d.dir); d.looks && errors.Is(err, fs.ErrNotExist) {
		return enginekit.Explained(checksPage, []driver.Finding{{
			Check: "folder", Level: driver.LevelWarn, Detail: d.dir + " is not there",
			Advice: "see whether the path is right; the first lock makes the folder",
		}})
	}
	var findings []driver.Finding
	for _, check := range checks {
		if ctx.Err() != nil {
			break
		}
		findings = append(findings, check())
	}
	return enginekit.Explained(checksPage, findings)
}

// usable judges whether this process can make and remove files in the folder, or read it if it only looks.
func (d *Driver) usable() driver.Finding {
	f := driver.Finding{Check: "folder", Level: driver.LevelOK, Detail: d.dir + " can be written"}
	fits := writable
	if d.looks {
		f.Detail, fits = d.dir+" can be read", readable
	}
	if err := fits(d.dir); err != nil {
		f.Level, f.Detail, f.Advice = driver.LevelFail, fmt.Sprintf("%s: %v", d.dir, err), adviceFor(err)
	}
	return f
}

// readable returns why this process cannot list the folder, or nil.
func readable(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return reason(err)
	}
	return reason(f.Close())
}
