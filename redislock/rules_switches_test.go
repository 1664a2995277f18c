package redislock

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/switches"
)

// setOff takes out the rule with that switch; it is nil unless the switches have been put in: see package switches.
var setOff func(name string)

var levers = []switches.Lever{
	{
		"acquire.go", "a.sent.Add(elapsed - elapsed/100 - 2*time.Millisecond)",
		`unless("drift", a.trusted(elapsed), a.sent.Add(elapsed))`,
	},
	{
		"acquire.go", "a.trusted(elapsed)",
		`unless("receipt", a.sent.Add(elapsed-elapsed/100-2*time.Millisecond), p.received)`,
	},
	{"acquire.go", "Lease: p.grant.lease,", `Lease: unless("short life", p.grant.lease, a.r.Lease),`},
	{"acquire.go", "p.grant.link == a.answer.link", `(off("link") || p.grant.link == a.answer.link)`},
	{"acquire.go", "p.grant.link != 0", `(off("zero") || p.grant.link != 0)`},
	{"acquire.go", "!a.granted(p).After(p.received)", `(off("jump") || !a.granted(p).After(p.received))`},
	{"acquire.go", "\t\tp.grant.now >= a.answer.now", `(off("back") || p.grant.now >= a.answer.now)`},
	{"notices.go", "w.again = true", `w.again = !off("again")`},
	{"acquire.go", "heartbeat := a.claim/2 -", `heartbeat := unless("beat", a.claim/2, a.claim) -`},
	{"presence.go", "return min(p.every(), said)", `return unless("alive", min(p.every(), said), 3*heartbeatEvery)`},
	{"acquire.go", "if a.answer.next > 0 {", `if a.answer.next > 0 && !off("next") {`},
	{"acquire.go", "a.d.opts.Replicas == 0 &&", `(off("replicas") || a.d.opts.Replicas == 0) &&`},
	{"acquire.go", "answer.Acked < a.d.opts.Replicas {", `answer.Acked < a.d.opts.Replicas && !off("acked") {`},
	{"notices.go", "e.wants = true", `e.wants = !off("early word")`},
	{
		"renew.go", "(*listener)(d).wanted(b.ID)",
		"if !off(\"word of a renewal\") {\n\t\t\t(*listener)(d).wanted(b.ID)\n\t\t}",
	},
	{"renew.go", "marks[n] = mayRetain", `marks[n] = unless("mark", mayRetain, unmarked)`},
	{"entry.go", "e.open = true", `e.open = !off("open")`},
	{"entry.go", "if d.gone.Has(r.ID) {", `if d.gone.Has(r.ID) && !off("gone") {`},
	{"acquire.go", "r.Limit > 0 && r.Weight > r.Limit:", `r.Limit > 0 && r.Weight > r.Limit && !off("weight"):`},
	{
		"format.go", "b = append(b, key.Kind...)\n\tb = append(b, ':')",
		`b = append(b, unless("kind", string(key.Kind)+":", "")...)`,
	},
	{
		"acquire.go", "if err := a.listen(ctx); err != nil {\n\t\treturn err\n\t}\n\ta.setTail('s')",
		"if err := unless(\"listen\", a.listen, func(context.Context) error { return nil })(ctx); err != nil {\n" +
			"\t\treturn err\n\t}\n\ta.setTail('s')",
	},
	{
		"format.go", "\"floor:{\"...)\n\tb = append(b, conn.Tag(slot)...)",
		"\"floor:{\"...)\n\tb = append(b, unless(\"slot\", conn.Tag(slot), conn.Tag(0))...)",
	},
	{
		"acquire.go", "err := a.listen(ctx)\n\t\tif err == nil {",
		"err := unless(\"listen again\", a.listen, func(context.Context) error { return nil })(ctx)\n" +
			"\t\tif err == nil {",
	},
	{"acquire.go", "call := &a.call\n", "call := &a.call\n\tif off(\"same ID\") {\n\t\ta.args[0] += \"'\"\n\t}\n"},
}

// TestRules_OfTheDriver_AreNecessary takes out one rule after the other, and its check must notice.
func TestRules_OfTheDriver_AreNecessary(t *testing.T) {
	if setOff == nil {
		switches.InPlace(t, levers)
		longrun.Only(t) // it compiles the package and its tests anew
		switches.Run(t, "redislock", t.Name(), levers)
		return
	}
	for _, r := range slices.Concat(driverRules, clusterRules, retentionRulesOfTheDriver) {
		for _, name := range r.switches {
			t.Run(r.name+"/"+name, func(t *testing.T) {
				setOff(name)
				defer setOff("")
				if err := r.run(t); err == nil {
					t.Fatal("the check does not notice that the rule is missing")
				} else {
					t.Logf("noticed: %v", err)
				}
			})
		}
	}
}
