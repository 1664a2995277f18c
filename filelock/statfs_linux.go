package filelock

import (
	"fmt"
	"syscall"
)

// What Diagnose asks about the file system.

// remoteSystems are the file systems, by the magic number of statfs(2), on which flock is not the kernel's alone.
var remoteSystems = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x65735546: "FUSE",
	0x00c36400: "Ceph",
	0x01021997: "9P",
	0x5346414f: "AFS",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x01161970: "GFS2",
	0x7461636f: "OCFS2",
	0x786f4256: "a VirtualBox share",
}

// fileSystem names the file system of dir, and says whether it is a local one.
func fileSystem(dir string) (name string, local bool, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return "", false, err
	}
	magic := uint32(st.Type)
	if name, remote := remoteSystems[magic]; remote {
		return name, false, nil
	}
	return fmt.Sprintf("a local file system (type %#x)", magic), true, nil
}

// freeSpace returns what is left for this user on the file system of dir. A file system that does not count files
// reports 1.
func freeSpace(dir string) (bytes, files uint64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	if st.Files == 0 {
		st.Ffree = 1
	}
	return st.Bavail * uint64(st.Bsize), st.Ffree, nil
}
