package filelock

import (
	"os"
	"testing"
)

func TestLiteral_NamesFilesAsTheyStand(t *testing.T) {
	for path, want := range map[string]string{
		`C:\locks/nul.mutex`:      `\\?\C:\locks\nul.mutex`,
		`\\server\share/a.mutex`:  `\\?\UNC\server\share\a.mutex`,
		`\\?\C:\locks\a.mutex`:    `\\?\C:\locks\a.mutex`,
		`relative/as-it-is.mutex`: `relative\as-it-is.mutex`,
	} {
		if got := literal(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestLockFile_OfTwoHandles_IsLockedByOne(t *testing.T) {
	dir := t.TempDir()
	d, err := New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := openLockFile(dir+`/nul.mutex`, dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := openLockFile(dir+`/nul.mutex`, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.tryLock(); err != nil {
		t.Fatal(err)
	}
	if err := second.tryLock(); err == nil {
		t.Error("two handles have the lock")
	}
	f.close()
	if err := second.tryLock(); err != nil {
		t.Errorf("after the first handle was closed: %v", err)
	}
	second.close()
	for _, finding := range d.Diagnose(t.Context()) {
		if finding.Level != "ok" {
			t.Errorf("doctor: %+v", finding)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestReadOnly_OnWindows_DiagnosesAndMakesNoFile(t *testing.T) {
	dir := t.TempDir()
	d, err := New(dir, &Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := d.Diagnose(t.Context())
	if len(found) != 1 || found[0].Level != "ok" || found[0].Detail != d.dir+" can be read" {
		t.Errorf("doctor: %+v", found)
	}
	after, err := os.Stat(dir)
	if err != nil || after.ModTime() != made.ModTime() {
		t.Errorf("the folder was written: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
