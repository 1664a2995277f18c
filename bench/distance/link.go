package distance

import (
	"context"
	"net"
	"runtime"
	"time"
)

const (
	// chunkSize is how much is read at once, and chunksHeld how many chunks are on their way before no more are read,
	// as in a network's buffers.
	chunkSize, chunksHeld = 32 << 10, 1024
)

// chunk is what was read at once, and when it arrives.
type chunk struct {
	due   time.Time
	bytes []byte
}

// accept connects whoever comes with the target. Connections end with one of their ends.
func accept(l net.Listener, target string, delay time.Duration) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			server, err := new(net.Dialer).DialContext(context.Background(), "tcp", target)
			if err != nil {
				_ = client.Close() // which tells it
				return
			}
			go forward(server, client, delay)
			forward(client, server, delay)
		}()
	}
}

// forward forwards one direction until it ends, which ends the other one.
func forward(to, from net.Conn, delay time.Duration) {
	chunks := make(chan chunk, chunksHeld)
	go write(to, from, chunks)
	defer close(chunks) // which closes both, once all has arrived
	for {
		b := make([]byte, chunkSize)
		n, err := from.Read(b)
		if n > 0 {
			chunks <- chunk{time.Now().Add(delay), b[:n]}
		}
		if err != nil {
			return
		}
	}
}

// write lets the chunks arrive. Its thread is its own, because how exactly a thread sleeps is a setting of the thread.
func write(to, from net.Conn, chunks <-chan chunk) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sleepExactly()
	defer to.Close()
	defer from.Close()
	var failed error
	for c := range chunks { // to its end, or the reader would wait
		if failed != nil {
			continue
		}
		sleepUntil(c.due)
		_, failed = to.Write(c.bytes)
	}
}
