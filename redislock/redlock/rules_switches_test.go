package redlock

import "github.com/interlock-go/interlock/internal/switches"

// setOff takes out the rule with that switch; it is nil unless the switches have been put in: see package switches.
var setOff func(name string)

var levers = []switches.Lever{
	{"driver.go", "quorum: sets.quorum()", `quorum: unless("majority", sets.quorum(), 2)`},
	{"judge.go", ">= rd.c.d.opts.NodeTimeout\n", `>= rd.c.d.opts.NodeTimeout && !off("deadline")` + "\n"},
	{
		"votes.go", "\treturn sent, last.Sent",
		"\tif off(\"before\") {\n\t\tsent = time.Now()\n\t}\n\treturn sent, last.Sent",
	},
	{
		"votes.go", "{ return v.grant.Sent.Add(v.grant.Lease) }",
		`{ return v.grant.Sent.Add(v.grant.Lease + unless("elapsed", 0, time.Minute)) }`,
	},
	{"round.go", "if left(sent, lease) <= 0 {", `if left(sent, lease) <= 0 && !off("elapsed") {`},
	{"votes.go", "return lease - drift(lease)", `return lease - unless("drift", drift(lease), 0)`},
	{
		"release.go", "\t\t\terr := rd.free(i, r, until)\n",
		"\t\t\terr := errFreed\n\t\t\tc.mu.Lock()\n\t\t\thas := rd.votes[i].state == granted\n\t\t\tc.mu.Unlock()\n" +
			"\t\t\tif has || !off(\"everywhere\") {\n\t\t\t\terr = rd.free(i, r, until)\n\t\t\t}\n",
	},
	{"renew.go", "h, q := &r.holds[i], r.d.quorum", `h, q := &r.holds[i], unless("renewal", r.d.quorum, 1)`},
	{
		"judge.go", "if wait := since.Add(grace).Sub(now); wait > 0 {",
		`if wait := since.Add(unless("grace", grace, time.Minute)).Sub(now); wait > 0 {`,
	},
	{
		"round.go", "\t\tvotes, err = rd.confirm(ctx, tokens)\n",
		"\t\tif !off(\"write back\") {\n\t\t\tvotes, err = rd.confirm(ctx, tokens)\n\t\t}\n",
	},
	{
		"round.go", "tokens := common(blocks, c.d.quorum)\n",
		"tokens := common(blocks, unless(\"median\", c.d.quorum, 1))\n",
	},
	{
		"claim.go", "= rd.id, joinRoundOwner(rd.id, r.Owner), try\n",
		"= rd.id+unless(\"same value\", \"\", time.Now().String()[20:29]), joinRoundOwner(rd.id, r.Owner), try\n",
	},
	{"marks.go", "{ return m.state == stateBlank ||", `{ return !off("rest") && m.state == stateBlank ||`},
	{
		"judge.go", "if left := rd.yieldAt.Sub(now); left > 0 {",
		`if left := rd.yieldAt.Sub(now); left > 0 || off("yield") {`,
	},
}
