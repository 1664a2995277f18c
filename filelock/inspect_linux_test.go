package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestLocks_ShowsWhoHoldsWhat(t *testing.T) {
	d := open(t, t.TempDir())
	free, id := newID(), newID()
	mustTry(t, d, free, "job/free")
	release(t, d, free, "job/free")
	mustTry(t, d, newID(), "other")
	before := time.Now().Truncate(time.Microsecond)
	g := mustTry(t, d, id, "job/nightly")
	got := list(t, d, "job/")
	want := driver.LockInfo{Kind: driver.KindMutex, Name: "job/nightly", Limit: 1, Holders: []driver.Holder{{
		Owner: "owner of " + id, Client: "client of " + id, Label: "label of " + id, Token: g.Token, Weight: 1,
	}}}
	if len(got) != 1 || len(got[0].Holders) != 1 {
		t.Fatalf("got %+v", got)
	}
	since := got[0].Holders[0].Since
	got[0].Holders[0].Since = time.Time{}
	if fmt.Sprint(got[0]) != fmt.Sprint(want) || since.Before(before) || since.After(time.Now()) {
		t.Errorf("got %+v since %v, want %+v", got[0], since, want)
	}
	release(t, d, id, "job/nightly")
	if got := list(t, d, "job/"); len(got) != 0 {
		t.Errorf("after the release: %+v", got)
	}
}

func TestLocks_TellsEveryName(t *testing.T) {
	d := open(t, t.TempDir())
	var want []string
	for _, name := range oddNames {
		mustTry(t, d, newID(), name)
		want = append(want, name)
		if got := list(t, d, name); !slices.ContainsFunc(got, func(l driver.LockInfo) bool { return l.Name == name }) {
			t.Errorf("%q is not listed: %v", name, got)
		}
	}
	var got []string
	for _, l := range list(t, d, "") {
		got = append(got, l.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(slices.Compact(want), got) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLocks_OfAThousand_KeepsDescriptorsFew(t *testing.T) {
	const n = 1000
	d := open(t, t.TempDir())
	ids := map[string]string{}
	files := descriptors(t)
	for i := range n {
		name := fmt.Sprintf("job %d", i)
		ids[name] = newID()
		mustTry(t, d, ids[name], name)
	}
	if got := list(t, d, ""); len(got) != n {
		t.Errorf("%d are listed", len(got))
	}
	for name, id := range ids {
		release(t, d, id, name)
	}
	if got := list(t, d, ""); len(got) != 0 {
		t.Errorf("after the release %d are listed", len(got))
	}
	if more := descriptors(t) - files; more > len(d.idle.slots) {
		t.Errorf("%d descriptors are kept", more)
	}
}

func TestLocks_WhileOthersTry_DisturbsNobody(t *testing.T) {
	dir := t.TempDir()
	d, looking := open(t, dir), open(t, dir)
	stop := make(chan struct{})
	var looker sync.WaitGroup
	looker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				for _, err := range looking.Locks(context.Background(), "") {
					if err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
	for range 3000 {
		id := newID()
		mustTry(t, d, id, "x") // nobody else tries: it must never fail
		release(t, d, id, "x")
	}
	close(stop)
	looker.Wait()
}

func TestLocks_OfFlockCommand_ShowsItsProcess(t *testing.T) {
	flockPath, err := exec.LookPath("flock")
	if err != nil {
		skip(t, "there is no flock(1)")
	}
	d := open(t, t.TempDir())
	path := d.path(mutex("x"))
	c := exec.Command(flockPath, path, "sh", "-c", "echo in; read line")
	stdin, _ := c.StdinPipe()
	stdout, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close(); _ = c.Wait() }()
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	got := list(t, d, "")
	if len(got) == 0 {
		skip(t, "/proc/locks does not name files as stat does on this file system")
	}
	if want := foreignClient(c.Process.Pid); len(got) != 1 || got[0].Name != "x" || got[0].Holders[0].Client != want {
		t.Errorf("got %+v, want %s", got, want)
	}
}

func TestLocks_WithDamagedAndForeignFiles_GoesOn(t *testing.T) {
	d := open(t, t.TempDir())
	mustTry(t, d, newID(), "damaged")
	if err := os.WriteFile(d.path(mutex("damaged")), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"README", "UPPER.mutex", "free.mutex"} {
		if err := os.WriteFile(d.dir+"/"+file, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(d.path(mutex("folder")), 0o700); err != nil {
		t.Fatal(err)
	}
	got := list(t, d, "")
	if len(got) != 1 || got[0].Name != "damaged" || len(got[0].Holders) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestLocks_WithAFileThatCannotBeOpened_ShowsItSoAndGoesOn(t *testing.T) {
	d := open(t, t.TempDir())
	const readable = 20
	for i := range readable {
		mustTry(t, d, newID(), fmt.Sprint("held", i))
	}
	if err := os.Symlink("/etc/passwd", d.path(mutex("link"))); err != nil {
		t.Fatal(err)
	}
	held, links := 0, 0
	for _, info := range list(t, d, "") {
		if info.Name == "link" {
			links++
		}
		switch {
		case info.Name != "link":
			held += len(info.Holders)
		case !strings.Contains(info.Unreadable, "symbolic link") || info.Kind != driver.KindMutex ||
			info.Holders != nil:
			t.Errorf("the link is shown as %+v", info)
		}
	}
	if held != readable || links != 1 {
		t.Errorf("%d of %d locks are listed, and the link %d times", held, readable, links)
	}
	_, err := d.Look(t.Context(), mutex("link"))
	wantRefusal(t, err)
}

func TestLocks_WhenTheCallerStopsOrEnds_Stops(t *testing.T) {
	d := open(t, t.TempDir())
	for i := range 5 {
		mustTry(t, d, newID(), fmt.Sprint(i))
	}
	for range d.Locks(context.Background(), "") {
		break
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	for _, err := range d.Locks(ctx, "") {
		if n++; n == 1 {
			cancel()
			continue
		}
		if !errors.Is(err, context.Canceled) || n > 2 {
			t.Fatalf("entry %d: %v", n, err)
		}
	}
}

func TestDescriptors_AreClosedOnExec(t *testing.T) {
	d := open(t, t.TempDir())
	mustTry(t, d, newID(), "x")
	file, err := d.File(mutex("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	links, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, link := range links {
		if to, err := os.Readlink("/proc/self/fd/" + link.Name()); err != nil || to != d.path(mutex("x")) {
			continue
		}
		found++
		info, err := os.ReadFile("/proc/self/fdinfo/" + link.Name())
		if err != nil {
			t.Fatal(err)
		}
		var flags int
		_, after, _ := strings.Cut(string(info), "flags:")
		if _, err := fmt.Sscanf(after, "%o", &flags); err != nil || flags&syscall.O_CLOEXEC == 0 {
			t.Errorf("descriptor %s has flags %o, %v", link.Name(), flags, err)
		}
	}
	if found != 2 {
		t.Errorf("%d descriptors of the lock file, want the hold's and the duplicate", found)
	}
}

func TestParseLocks(t *testing.T) {
	const text = "1: OFDLCK ADVISORY  WRITE -1 fe:00:9977923 4611686018427387904 4611686018427387904\n" +
		"2: FLOCK  ADVISORY  WRITE 11835 fe:1f:9977923 0 EOF\n" +
		"2: -> FLOCK  ADVISORY  WRITE 11836 fe:1f:9977923 0 EOF\n" +
		"3: POSIX  ADVISORY  READ 7 00:19:5 0 EOF\n4: FLOCK\n5: FLOCK ADVISORY WRITE x y 0 EOF\n" +
		"6: FLOCK ADVISORY WRITE 0 00:19:6 0 EOF\n\n"
	got := parseLocks([]byte(text))
	locked, free := fileID{dev: 0xfe1f, ino: 9977923}, fileID{dev: 0xfe00, ino: 9977923}
	if len(got) != 1 || got.of(locked) != 11835 || got.of(free) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestPathID_IsThatOfTheOpenFile(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/dev/shm", "/proc/self"} {
		path := dir + "/status"
		if !strings.HasPrefix(dir, "/proc") {
			path = dir + "/interlock-test"
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Log(err)
				continue
			}
			defer os.Remove(path)
		}
		got, err := pathID(path)
		want, errWant := lstatID(path)
		if err != nil || errWant != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v, %v", path, got, err, want, errWant)
		}
	}
}
