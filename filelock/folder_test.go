//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestOpen_OfAURL(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		url  string
		want []string // parts of the error; none: it opens
	}{
		{"file://" + dir, nil},
		{"file://" + dir + "/new/and%20deep", nil},
		{"FILE://" + dir + "/", nil},
		{"file://locks", []string{"three slashes", "locks"}},
		{"file://localhost" + dir, []string{"three slashes", "localhost"}},
		{"file://", []string{"names no folder", "file:///"}},
		{"file:///", []string{"names no folder"}},
		{"file://user:geheim@/x", []string{"user"}},
		{"file://" + dir + "?mode=0700", []string{"mode", "readonly"}},
		{"file://" + file, []string{file, "a part of the path is a file"}},
		{"file://" + file + "/below", []string{file, "a part of the path is a file"}},
		{"file://" + file + "?readonly=true", []string{file, "a part of the path is a file"}},
		{"file://" + file + "/below?readonly=true", []string{file, "a part of the path is a file"}},
		{"file://" + dir + "/missing?readonly=true", nil},
		{"file:///proc/nowhere", []string{"/proc/nowhere"}},
		{"file:///" + strings.Repeat("x", 300), []string{"too long"}},
		{"file:///a%00b", []string{"invalid argument"}},
	} {
		d, err := driver.DefaultMux.Open(context.Background(), row.url, driver.Config{})
		if err == nil {
			_ = d.Close()
		}
		if (err == nil) != (row.want == nil) {
			t.Errorf("%s: %v", row.url, err)
			continue
		}
		for _, part := range append(row.want, "") {
			if err != nil && (!strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "geheim")) {
				t.Errorf("%s: %v, want %q in it", row.url, err, part)
			}
		}
	}
}

func TestNew_WithoutAFolder_IsRefused(t *testing.T) {
	if _, err := New("", nil); err == nil {
		t.Error("an empty path is taken")
	}
}

func TestNew_OfARelativePath_KeepsItsFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	d := open(t, "locks")
	t.Chdir(t.TempDir())
	mustTry(t, d, newID(), "x")
	if !filepath.IsAbs(d.dir) {
		t.Errorf("the folder is %s", d.dir)
	}
}

func TestFiles_HaveTheFoldersPermissions(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	own := filepath.Join(t.TempDir(), "own")
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o770); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]os.FileMode{own: 0o600, shared: 0o660} {
		d := open(t, dir)
		mustTry(t, d, newID(), "x")
		if st, err := os.Stat(d.path(mutex("x"))); err != nil || st.Mode() != want {
			t.Errorf("%v, %v, want %v", st.Mode(), err, want)
		}
	}
	if st, _ := os.Stat(own); st.Mode().Perm() != folderMode {
		t.Errorf("the new folder has %v", st.Mode())
	}
}

func TestAcquire_OfAPathThatIsNoLockFile_IsRefused(t *testing.T) {
	d := open(t, t.TempDir())
	for name, occupy := range map[string]func(path string) error{
		"symbolic link": func(path string) error { return os.Symlink("/etc/passwd", path) },
		"folder":        func(path string) error { return os.Mkdir(path, 0o700) },
		"fifo":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		path := d.path(mutex(name))
		if err := occupy(path); err != nil {
			t.Fatal(err)
		}
		_, err := try(d, newID(), name)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		wantRefusal(t, err)
		for info, err := range d.Locks(t.Context(), name) { // an operator can see what stands there
			if err != nil || info.Name == "symbolic link" && info.Unreadable == "" {
				t.Errorf("%s is listed as %+v, %v", name, info, err)
			}
		}
	}
}

func TestAcquire_WithTooManyOpenFiles_SaysSoAndHoldsNothing(t *testing.T) {
	rerun(t, nil, func(t *testing.T) {
		d := open(t, t.TempDir())
		idle := newID()
		mustTry(t, d, idle, "idle")
		release(t, d, idle, "idle")
		var taken []*os.File
		for {
			f, err := os.Open(d.dir)
			if err != nil {
				break
			}
			taken = append(taken, f)
			if len(taken) == 1 {
				var limit syscall.Rlimit
				set(&limit.Cur, f.Fd()+10)
				set(&limit.Max, f.Fd()+10)
				if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
					t.Fatal(err)
				}
			}
		}
		first := newID()
		mustTry(t, d, first, "first") // the idle descriptor gives way
		_, err := try(d, newID(), "second")
		wantError(t, err, syscall.EMFILE, d.path(mutex("second")), "ulimit")
		for _, f := range taken {
			_ = f.Close()
		}
		mustTry(t, d, newID(), "second")
	})
}

// wantError checks that err matches errno, and names the path and the advice.
func wantError(t *testing.T, err error, errno syscall.Errno, path, advice string) {
	t.Helper()
	if !errors.Is(err, errno) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), advice) {
		t.Errorf("got %v, want %v, %s and %q", err, errno, path, advice)
	}
	wantRefusal(t, err)
}

// wantRefusal checks that err is a RefusedError that is not Open, and gives advice.
func wantRefusal(t *testing.T, err error) {
	t.Helper()
	if refused := driver.Refusal(err); refused == nil || refused.Hint == "" || !driver.IsDefinite(err) {
		t.Errorf("%v is no refusal that says what to do", err)
	}
}

// set assigns to a number whose type differs from one system to the next.
func set[T int64 | uint64](to *T, n uintptr) { *to = T(n) }

func TestNew_OfAFolderThatOthersOwn_SaysWhatToDo(t *testing.T) {
	const dirVar = "INTERLOCK_FILELOCK_DIR"
	if os.Getenv(rerunVar) == "" {
		dir := t.TempDir()
		if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o555)); err != nil {
			t.Fatal(err)
		}
		t.Setenv(dirVar, dir)
	}
	rerun(t, nil, func(t *testing.T) {
		dir := os.Getenv(dirVar)
		if os.Getuid() == 0 { // permissions do not bind root
			const nobody = 65534
			if err := errors.Join(syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{dir, dir + "/new"} {
			_, err := New(path, nil)
			wantError(t, err, syscall.EACCES, path, "write access")
		}
	})
}

// A driver that only looks serves a user without the right to write, and makes nothing.
func TestReadOnly_ListsAndDiagnoses_AndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	defer d.Close()
	mustTry(t, d, newID(), "x")
	looks, err := driver.DefaultMux.Open(t.Context(), "file://"+filepath.ToSlash(dir)+"?readonly=true", driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer looks.Close()
	if !tellsHolders {
		t.Skip("holders are not told here")
	}
	if got := list(t, looks.(*Driver), ""); len(got) != 1 || got[0].Name != "x" {
		t.Errorf("lists %+v", got)
	}
	if _, err := looks.Acquire(t.Context(), request(newID(), "y")); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	missing := filepath.Join(dir, "not", "there")
	none, err := New(missing, &Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if got := list(t, none, ""); len(got) != 0 {
		t.Errorf("lists %+v", got)
	}
	if got := none.Diagnose(t.Context()); len(got) != 1 || got[0].Level != driver.LevelWarn {
		t.Errorf("diagnoses %+v", got)
	}
	if _, err := os.Stat(filepath.Dir(missing)); !os.IsNotExist(err) {
		t.Errorf("a folder was made: %v", err)
	}
}
