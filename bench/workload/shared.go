package workload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/interlock-go/interlock/bench/peer"
)

// share maps n numbers that all processes share which name the same path. The file is made if it is missing.
func share(path string, n int) (memory []byte, numbers []atomic.Int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	size := n * int(unsafe.Sizeof(atomic.Int64{}))
	err = f.Truncate(int64(size))
	if err == nil {
		memory, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, nil, err
	}
	return memory, unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&memory[0])), n), nil
}

// board is where the processes of a job tell each other how far they are. To look at it costs nobody a message.
type board struct {
	memory []byte

	ready    *atomic.Int64 // clients that are connected
	asked    *atomic.Int64 // calls of Lock
	held     *atomic.Int64 // acquisitions
	done     *atomic.Int64 // those who want nothing any more
	released *atomic.Int64 // when the last release was called, by monotonic
	last     *atomic.Int64 // the number of the last hold, once it is known
}

func openBoard(dir string) (*board, error) {
	memory, n, err := share(filepath.Join(dir, ".board"), 6)
	if err != nil {
		return nil, err
	}
	return &board{
		memory: memory, ready: &n[0], asked: &n[1], held: &n[2], done: &n[3], released: &n[4], last: &n[5],
	}, nil
}

func (b *board) close() error { return syscall.Munmap(b.memory) }

// releases gives the worker's lock back and says when.
func (b *board) releases(ctx context.Context, worker peer.Worker) error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	b.released.Store(now)
	return worker.Unlock(ctx)
}
