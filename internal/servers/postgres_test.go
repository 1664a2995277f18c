package servers

import (
	"context"
	"testing"
	"time"
)

func TestPostgres_ServesHangsDiesAndComesBack(t *testing.T) {
	n := PostgresServer(t, nil)
	serves := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return postgresServes(ctx, n.Addr())
	}
	if err := serves(10 * time.Second); err != nil {
		t.Fatalf("after its start: %v", err)
	}
	n.Stop()
	if err := serves(200 * time.Millisecond); err == nil {
		t.Error("it answers although it was stopped")
	}
	n.Cont()
	if err := serves(10 * time.Second); err != nil {
		t.Errorf("after it was stopped: %v", err)
	}
	n.Kill()
	if n.Alive() {
		t.Error("it lives after it was killed")
	}
	n.Restart()
	if err := serves(10 * time.Second); err != nil {
		t.Errorf("after its restart: %v", err)
	}
}

func TestPostgres_WithPasswordAndTLS_Starts(t *testing.T) {
	n := PostgresServer(t,
		&PostgresOptions{Password: "s3cret", TLS: true, Config: map[string]string{"max_connections": "20"}})
	if n.TLS() == nil {
		t.Error("there is nothing for clients to trust the server")
	}
	if got, want := n.URL(&PostgresOptions{Password: "s3cret"}), "postgres://postgres:s3cret@"+n.Addr()+
		"/postgres"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
