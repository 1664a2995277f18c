package main

import (
	"context"

	"github.com/interlock-go/interlock/bench/engined"
)

// onServers starts the server that a scenario needs, one at a time: what others do while they are idle is not to be
// measured.
type onServers struct {
	settings *settings
	machine  *string // the line that says what was measured on
	now      *engined.Server
}

// change starts the server of an engine, or none if it is "", unless that one runs already.
func (o *onServers) change(ctx context.Context, engine string) error {
	if o.now != nil && o.now.Engine == engine || o.now == nil && engine == "" {
		return nil
	}
	if err := o.close(); err != nil || engine == "" {
		return err
	}
	server, err := engined.Start(ctx, engine)
	if err != nil {
		return err
	}
	o.now = server
	o.settings.servers = map[string]string{engine: server.Addr}
	o.settings.pids = map[string][]int{engine: server.PIDs}
	*o.machine += " " + server.Version + " on the same machine, over loopback"
	if engine != engined.Redlock { // whose servers write nothing
		*o.machine += ", waiting for the disk"
	}
	*o.machine += "."
	return nil
}

func (o *onServers) close() error {
	if o.now == nil {
		return nil
	}
	server := o.now
	o.now, o.settings.servers, o.settings.pids = nil, nil, nil
	return server.Close()
}
