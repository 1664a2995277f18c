//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"os"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestDiagnose_ChecksTheFolderAndLeavesNothing(t *testing.T) {
	d := open(t, t.TempDir())
	checks := map[string]driver.Level{}
	for _, f := range d.Diagnose(context.Background()) {
		if f.Detail == "" || f.Level != driver.LevelOK && f.Advice == "" && f.Check != "space" {
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
