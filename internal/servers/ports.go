package servers

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

const (
	// Ports are below those that systems give to outgoing connections (32768 on Linux, 49152 elsewhere): otherwise one
	// of them might sit on the port of a server that was killed and wants to come back.
	firstPort, lastPort = 10_000, 19_999

	// busOffset is how far above its port a node of a Redis Cluster listens for the other nodes.
	busOffset = 10_000

	// portTries is how many ports are looked at for each that is needed.
	portTries = 200
)

// again does f once more, after a moment, if it fails: who looks for free ports has each of those it tries for an
// instant, also one that must be used again just now.
func again(f func() error) (err error) {
	for i := range attempts {
		if i > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		if err = f(); err == nil {
			return nil
		}
	}
	return err
}

// freePorts returns ports of loopback that nobody listened on a moment ago, nor on those busOffset above them, and that
// hardly any other process chooses as long as this one lives.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n * portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if !reserve(port) {
			continue
		}
		for _, p := range []int{port, port + busOffset} {
			l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(p)))
			if err != nil {
				port = 0
				break
			}
			defer l.Close() // all stay open until all are chosen, so that they differ
		}
		if port == 0 {
			continue
		}
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, errors.New("no free ports")
}
