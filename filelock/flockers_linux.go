package filelock

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Holders that are not of this package, from /proc/locks (holder.go, inspect.go).

// flockers are the files with a flock, and the process that took each.
type flockers map[flockedFile]int

// flockedFile is a file as /proc/locks names it.
type flockedFile struct {
	major, minor, ino uint64
}

// flockHolders reads /proc/locks, to name holders that are not of this package. It may take milliseconds: see
// foreignFor. It is an aid: the file shows nothing of other PID namespaces, and on overlayfs and btrfs its device
// numbers are not those of stat. A holder that is not found is left unnamed.
func flockHolders() flockers {
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	return parseLocks(text)
}

// parseLocks understands lines such as
//
//	2: FLOCK  ADVISORY  WRITE 11835 fe:00:9977923 0 EOF
//
// Those of waiters have an arrow behind the number, and are left out with everything else that is not a flock.
func parseLocks(text []byte) flockers {
	found := flockers{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 6 || words[1] != "FLOCK" {
			continue
		}
		pid, err := strconv.Atoi(words[4])
		id, ok := parseFlockedFile(words[5])
		if err == nil && ok && pid > 0 {
			found[id] = pid
		}
	}
	return found
}

// parseFlockedFile parses the file of a line of /proc/locks: MAJOR:MINOR:INODE, the first two in hexadecimal.
func parseFlockedFile(s string) (flockedFile, bool) {
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return flockedFile{}, false
	}
	major, errMajor := strconv.ParseUint(parts[0], 16, 32)
	minor, errMinor := strconv.ParseUint(parts[1], 16, 32)
	ino, errIno := strconv.ParseUint(parts[2], 10, 64)
	return flockedFile{major, minor, ino}, errMajor == nil && errMinor == nil && errIno == nil
}

// of returns the process that has a flock on the file, or 0.
func (f flockers) of(id fileID) int { return f[listed(id)] }

// listed returns the file as /proc/locks names it. Its device numbers are not split as those of stat are.
func listed(id fileID) flockedFile {
	return flockedFile{
		major: id.dev>>8&0xfff | id.dev>>32&^uint64(0xfff),
		minor: id.dev&0xff | id.dev>>12&^uint64(0xff),
		ino:   id.ino,
	}
}
