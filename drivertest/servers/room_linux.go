package servers

import (
	"runtime"
	"syscall"
)

// newNetRoom has a network of its own, in which there is nothing.
func newNetRoom() (*room, error) { return newRoom(syscall.CLONE_NEWNET, func() error { return nil }) }

// newMountRoom sees what others mount, and nobody else sees what is mounted there.
func newMountRoom() (*room, error) {
	return newRoom(syscall.CLONE_NEWNS, func() error {
		return syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_SLAVE, "")
	})
}

func newRoom(flags int, furnish func() error) (*room, error) {
	r := &room{tasks: make(chan func()), ended: make(chan struct{})}
	ready := make(chan error)
	onOtherThread(func() { // ends with close
		defer close(r.ended)
		r.id = syscall.Gettid()
		err := syscall.Unshare(flags)
		if err == nil {
			err = furnish()
		}
		ready <- err
		if err != nil {
			return
		}
		for task := range r.tasks {
			task()
		}
	})
	if err := <-ready; err != nil {
		<-r.ended
		return nil, err
	}
	return r, nil
}

// onOtherThread has f done by a thread that does nothing else and ends with it. It is not the first one, which stands for the
// process: others would take its namespaces for the process's.
func onOtherThread(f func()) {
	begun := make(chan struct{})
	go func() { // ends with f
		// Nobody unlocks it: a goroutine that ends so takes its thread with it, which nobody else may use any more.
		runtime.LockOSThread()
		if syscall.Gettid() == syscall.Getpid() {
			onOtherThread(f) // while this one is kept
			runtime.UnlockOSThread()
			close(begun)
			return
		}
		close(begun)
		f()
	}()
	<-begun
}

// mountMemory mounts a file system that is in memory and has room for so many bytes.
func mountMemory(dir, options string) error {
	return syscall.Mount("interlock", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options)
}
