//go:build (linux && !amd64 && !arm64) || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

// pathID returns the identity of the file at path.
func pathID(path string) (fileID, error) { return lstatID(path) }
