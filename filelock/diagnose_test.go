//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestDiagnose_ChecksTheFolderAndLeavesNothing(t *testing.T) {
	d := open(t, t.TempDir())
	checks := map[string]driver.Level{}
	for _, f := range d.Diagnose(context.Background()) {
		if f.Detail == "" || f.Page == "" || f.Level != driver.LevelOK && f.Advice == "" && f.Check != "space" {
			t.Errorf("%+v says too little", f)
		}
		checks[f.Check] = f.Level
	}
	for _, check := range []string{"folder", "exclusion", "waiting", "file system", "space"} {
		if _, done := checks[check]; !done {
			t.Errorf("%q was not checked", check)
		}
	}
	if checks["folder"] != driver.LevelOK || checks["exclusion"] != driver.LevelOK {
		t.Errorf("got %v", checks)
	}
	if left, _ := os.ReadDir(d.dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDiagnose_OfAFolderThatIsGone_FailsFirst(t *testing.T) {
	d := open(t, t.TempDir()+"/locks")
	if err := os.Remove(d.dir); err != nil {
		t.Fatal(err)
	}
	got := d.Diagnose(context.Background())
	if got[0].Check != "folder" || got[0].Level != driver.LevelFail {
		t.Errorf("got %+v", got)
	}
}

func TestDiagnose_OfTheFoldersMode(t *testing.T) {
	d := open(t, t.TempDir())
	const foreign = 54321
	for _, row := range []struct {
		mode  os.FileMode
		group int
		level driver.Level
		says  string
	}{
		{0o700, os.Getegid(), driver.LevelOK, "can be written"},
		{0o777, os.Getegid(), driver.LevelWarn, "everybody may remove lock files"},
		{0o777 | os.ModeSticky, os.Getegid(), driver.LevelOK, ""},
		{0o770, os.Getegid(), driver.LevelOK, ""},
		{0o770 | os.ModeSetgid, foreign, driver.LevelOK, ""},
		{0o770, foreign, driver.LevelWarn, "others of the folder's group"},
	} {
		if row.group == foreign && (os.Geteuid() != 0 || runtime.GOOS != "linux") {
			continue // only root gives folders to a group that is not its own
		}
		if err := errors.Join(os.Chown(d.dir, -1, row.group), os.Chmod(d.dir, row.mode)); err != nil {
			t.Fatal(err)
		}
		f := d.checkFolder()
		if f.Level != row.level || !strings.Contains(f.Detail, row.says) ||
			f.Level != driver.LevelOK && f.Advice == "" {
			t.Errorf("mode %v of group %d: %+v, want %s", row.mode, row.group, f, row.level)
		}
	}
}
