// What is typed, read in a goroutine that can be ended. toploop.go gets it, topkeys.go makes keys of it. A deadline for
// the read would be simpler, but stdin has none: it is not in the poller of Go's runtime.

package main

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// readKeys returns what a terminal sends, and closes the channel when it has vanished. stop ends that, and must be
// called: what is typed after it is for the next program.
//
// A pipe ends the wait: closing its writing end makes the other readable. A signal would not do, because the runtime's
// own signals interrupt select too.
func readKeys(in *os.File) (typed <-chan string, stop func(), err error) {
	ended, end, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	// Without a buffer, at most one read is ahead of the loop: what is typed later stays for the next program.
	ch, quit := make(chan string), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { // ends by stop, or when the terminal has vanished
		defer close(ch)
		buffer := make([]byte, 1024)
		for readable(int(in.Fd()), int(ended.Fd())) {
			n, err := in.Read(buffer)
			if err != nil || n == 0 {
				return
			}
			select {
			case ch <- string(buffer[:n]):
			case <-quit:
				return
			}
		}
	})
	return ch, func() {
		close(quit)
		end.Close()
		reader.Wait()
		ended.Close()
	}, nil
}

// readable waits until there is something to read from fd, and returns false when end can be read, which closing its
// other side brings about. A read from a terminal cannot be called off, so none is begun before something is there. (On
// macOS poll does not know terminals; select does.)
//
// EINTR is usual: the runtime preempts goroutines by a signal, and the kernel never restarts select.
func readable(fd, end int) bool {
	for {
		var set unix.FdSet
		set.Zero()
		set.Set(fd)
		set.Set(end)
		_, err := unix.Select(max(fd, end)+1, &set, nil, nil, nil)
		if err == nil {
			return !set.IsSet(end)
		}
		if !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}
