package redislock

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestOptions_Defaults(t *testing.T) {
	for _, o := range []*Options{nil, {}} {
		got, err := o.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		if got.Prefix != "interlock:" || got.Replicas != 0 || got.ReplicaTimeout != time.Second ||
			got.Check != CheckWarn || got.Logger == nil {
			t.Errorf("got %+v", got)
		}
	}
	given := &Options{Prefix: "app/锁:"}
	if got, err := given.withDefaults(); err != nil || got.Prefix != given.Prefix {
		t.Errorf("got %+v, %v", got, err)
	}
	if given.ReplicaTimeout != 0 || given.Logger != nil {
		t.Errorf("the caller's options were changed: %+v", given)
	}
}

func TestOptions_ThatContradict_AreRefusedBeforeAnythingIsSent(t *testing.T) {
	for says, o := range map[string]*Options{
		"braces":             {Prefix: "a{b}:"},
		"spaces":             {Prefix: "a b:"},
		"control characters": {Prefix: "a\vb:"},
		"or control":         {Prefix: "a\fb:"},
		"spaces or control":  {Prefix: "a\x00b:"},
		"at most 128":        {Prefix: strings.Repeat("a", 129)},
		"0 to 100 replicas":  {Replicas: -1},
		"replicas, not 101":  {Replicas: 101},
		"at least 1 ms":      {ReplicaTimeout: time.Microsecond},
		"not -1s":            {ReplicaTimeout: -time.Second},
		"unknown check poli": {Check: CheckNone + 1},
	} {
		conn := &closedConn{}
		d, err := NewConn(conn, o)
		if d != nil || err == nil || !strings.HasPrefix(err.Error(), "redis: ") ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%+v: got %v, want an error that says %q", o, err, says)
		}
		if conn.started || !conn.closed {
			t.Errorf("%+v: started %v, closed %v", o, conn.started, conn.closed)
		}
	}
}

func TestNew_WithoutAClient_SaysSo(t *testing.T) {
	if d, err := New(nil, nil); d != nil || err == nil || !strings.Contains(err.Error(), "the client is nil") {
		t.Errorf("New: %v", err)
	}
	if d, err := NewConn(nil, nil); d != nil || err == nil || !strings.Contains(err.Error(), "the connection is nil") {
		t.Errorf("NewConn: %v", err)
	}
}

// closedConn is a Conn that notes what is done to it first and last.
type closedConn struct {
	scriptedConn
	started, closed bool
}

func (c *closedConn) Start(context.Context, string, Handler) error { c.started = true; return nil }
func (c *closedConn) Close() error                                 { c.closed = true; return nil }
