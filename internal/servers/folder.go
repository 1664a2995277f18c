package servers

import (
	"os"
	"path/filepath"
)

// aliveName is the file in a folder of servers that its process has locked for as long as it lives.
const aliveName = ".alive"

// newFolder makes a new folder of the system's temporary ones. A process that was killed leaves its folder, with the
// data of servers in it, so this also removes what such processes have left under the same prefix.
func newFolder(prefix string) (dir string, remove func() error, err error) {
	removeLeft(prefix)
	for {
		if dir, err = os.MkdirTemp("", prefix); err != nil {
			return "", nil, err
		}
		alive, locked := claim(dir, os.O_CREATE)
		if locked {
			return dir, func() error {
				defer alive.Close() // not before: another process could begin to remove it too
				return os.RemoveAll(dir)
			}, nil
		}
		// Between the two calls another process has taken it for one that was left. It is empty.
		_ = os.RemoveAll(dir)
	}
}

// removeLeft removes the folders whose process has ended. One without the file is somebody else's, or a moment old.
func removeLeft(prefix string) {
	all, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*", aliveName))
	if err != nil {
		return
	}
	for _, file := range all {
		if alive, locked := claim(filepath.Dir(file), 0); locked {
			_ = os.RemoveAll(filepath.Dir(file)) // what cannot be removed stays for a next one
			_ = alive.Close()
		}
	}
}
