package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// natsServer is a NATS server with JetStream in this process: it is a Go library, so nothing has to be installed.
type natsServer struct {
	s    *server.Server
	dir  string
	port int
}

// startNATS starts a server that keeps its streams in dir. The port is 0 for any that is free.
func startNATS(dir string, port int) (*natsServer, error) {
	options := &server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true}
	if port == 0 {
		options.Port = server.RANDOM_PORT
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		s.Shutdown()
		return nil, errors.New("nats: the server does not start")
	}
	n := &natsServer{s: s, dir: dir, port: port}
	if _, err := fmt.Sscanf(s.ClientURL(), "nats://127.0.0.1:%d", &n.port); err != nil {
		n.stop()
		return nil, fmt.Errorf("nats: its URL is %s: %w", s.ClientURL(), err)
	}
	return n, nil
}

func (n *natsServer) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.port) }

// stop ends the server. Its streams stay in its folder.
func (n *natsServer) stop() {
	n.s.Shutdown()
	n.s.WaitForShutdown()
}

// restart starts it again with what it has kept, on the same port.
func (n *natsServer) restart() error {
	n.stop()
	next, err := startNATS(n.dir, n.port)
	if err == nil {
		n.s = next.s
	}
	return err
}
