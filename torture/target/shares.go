package target

import (
	"strings"

	"github.com/interlock-go/interlock/torture/history"
)

// Shares are the ways in which the target's locks can be shared.
func (g *Target) Shares() []history.Share {
	rw := []history.Share{history.Reads, history.Writes}
	switch {
	case g.Name == "file", g.Name == "mariadb":
		return nil
	case g.Name == "postgres", g.Name == "redlock", strings.HasPrefix(g.Name, "zookeeper"):
		return rw
	case strings.HasPrefix(g.Name, "redis"):
		return append(rw, history.Permits, history.Latch)
	}
	return append(rw, history.Permits)
}

// Near says why a server that is far away loses holds without a fault, if it does.
func (g *Target) Near() string {
	if strings.HasPrefix(g.Name, "zookeeper") {
		return "a session is trusted for three quarters of its timeout, which leaves a tenth for slow answers"
	}
	return ""
}
