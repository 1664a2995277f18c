package redislock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

func (d *Driver) checkAtStart(context.Context) error { return nil }

// Diagnose judges the servers' set-up.
func (d *Driver) Diagnose(context.Context) []driver.Finding { return nil }
