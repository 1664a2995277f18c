package itest

import (
	"os"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

var lasting servers.Lasting

func TestMain(m *testing.M) { os.Exit(lasting.Run(m)) }
