package servers

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"
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

// onOtherThread has f done by a thread that does nothing else and ends with it. It is not the first one, which stands
// for the process: others would take its namespaces for the process's.
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

// dialTime bounds one try to connect from a room: who is behind a cut does not say that nobody is there.
const dialTime = 3 * time.Second

// dial connects from an address of the room to host:port, both of IPv4. A signal ends the wait of a socket with a
// deadline: then it begins anew.
func (r *room) dial(source, addr string) (net.Conn, error) {
	from, err := netip.ParseAddr(source)
	if err != nil {
		return nil, err
	}
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	for {
		if conn, err := r.connect(from, to); !errors.Is(err, syscall.EINTR) {
			return conn, err
		}
	}
}

// connect is one try. The room's thread only makes the socket, which is then in its network: it has more to do than to
// wait for an answer that a cut may have lost.
func (r *room) connect(from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	var err error
	socket := -1
	r.do(func() { socket, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0) })
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(socket), to.String())
	defer file.Close() // net has a copy
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: from.As4()}); err != nil {
		return nil, os.NewSyscallError("bind", err)
	}
	most := syscall.NsecToTimeval(dialTime.Nanoseconds())
	if err := syscall.SetsockoptTimeval(socket, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &most); err != nil {
		return nil, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Connect(socket, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	return net.FileConn(file)
}

// mountMemory mounts a file system that is in memory and has room for so many bytes.
func mountMemory(dir, options string) error {
	return syscall.Mount("interlock", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options)
}
