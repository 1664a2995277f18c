package redislock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// rule is one of the rules without which the protocol breaks, as something that can be checked and taken out.
type rule struct {
	name    string
	check   func(s *stage)
	mutants []mutant
	alone   bool // it changes or watches the whole server
}

// mutant takes a rule out of the scripts: the text old, which is at one place of each script that has it, becomes is.
type mutant struct{ name, old, is string }

// of returns the mutants of scripts.
func (m mutant) of(b *book) (*book, error) {
	changed := 0
	edit := func(s *Script) *Script {
		switch n := strings.Count(s.Source(), m.old); n {
		case 0:
			return s
		case 1:
			changed++
		default:
			changed = -1 << 16
		}
		return NewScript(strings.Replace(s.Source(), m.old, m.is, 1))
	}
	mutated := &book{
		acquire: edit(b.acquire), release: edit(b.release), requeue: edit(b.requeue), breaking: edit(b.breaking),
		renew: edit(b.renew), look: edit(b.look),
	}
	if changed < 1 {
		return nil, fmt.Errorf("the text %q is not at exactly one place of a script", m.old)
	}
	return mutated, nil
}

// testRules checks the rules, each on a lock of its own, and that each check fails when its rule is taken out.
func testRules(t *testing.T, server *servers.RedisNode, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if !r.alone {
				t.Parallel() // most of it is to wait for the ends of leases and claims
			}
			eachWay(t, server, r.check)
			for _, m := range r.mutants {
				t.Run("without "+m.name, func(t *testing.T) { testMutant(t, server, r, m) })
			}
		})
	}
}

func testMutant(t *testing.T, server *servers.RedisNode, r rule, m mutant) {
	t.Helper()
	b, err := m.of(scriptsAsTheyAre())
	if err != nil {
		t.Fatal(err)
	}
	noticed := play(t, server, b, false, func(err error) bool { return err != nil }, r.check)
	if noticed == nil {
		t.Fatal("the check does not notice that the rule is missing")
	}
	if strings.Contains(noticed.Error(), "script") && strings.Contains(noticed.Error(), "ompil") {
		t.Fatalf("the mutant does not run: %v", noticed)
	}
	t.Logf("noticed: %v", noticed)
}
