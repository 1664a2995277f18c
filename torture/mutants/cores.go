package mutants

// cores are bugs of the portable core and of the reference engine: how long a hold lasts, and whose
// it is. They are simulated.
func cores() []Mutant {
	return []Mutant{
		{
			ID: "M1", Bug: "a release frees whoever holds the lock, not the hold that it names",
			Known: "SET NX with DEL",
			Edits: []Edit{
				{
					For: []Where{Simulation}, File: "memlock/driver.go", Old: "error { return q.release(now, r) })",
					New: "error { return q.releaseAny(now, r) })",
				},
				{
					For: []Where{Torture}, File: "redislock/scripts/release.lua", Old: "local hold = find(id)\n",
					New: "local hold = find(id)\nif not hold and holds[1] then\n\thold = holds[1]\nend\n",
				},
			},
			Checks: []Check{simulated("exclusion"), tortured("K4", "redis", "late-requests", "20s")},
		},
		{
			ID: "M2", Bug: "the lease is counted from the reply, not from before the request",
			Edits: []Edit{
				{
					File: "internal/shell/request.go", Old: "\tdefer tellOver(f)\n\trefused :=",
					New: "\tdefer tellOver(f)\n\tanswer.Sent = sentOf(answer.Sent)\n\trefused :=",
				},
				{
					File: "internal/core/renew.go", Old: "\t\tg.Confirm(b.sent,",
					New: "\t\tif isMutant(\"M2\") {\n\t\t\tb.sent = now\n\t\t}\n\t\tg.Confirm(b.sent,",
				},
			},
			Checks: []Check{simulated("exclusion")},
		},
		{
			ID: "M3", Bug: "deadlines are on the wall clock, which is set back",
			Edits: []Edit{
				{
					File: "internal/trust/trust.go", Old: "Instant(time.Since(c.born)) }",
					New: "Instant(time.Since(c.born) + step()) }",
				},
				{
					File: "internal/trust/trust.go", Old: "Instant(t.Sub(c.born)) }",
					New: "Instant(t.Sub(c.born) + step()) }",
				},
			},
			Checks: []Check{simulated("exclusion")},
		},
		{
			ID: "M4", Bug: "a renewal that comes after the end makes the hold anew", Known: "redsync #149",
			Edits: []Edit{{
				File: "memlock/holds.go", Old: "\tif err != nil {\n\t\treturn err\n\t}\n\trec.signalled = false",
				New: "\tif err != nil && isMutant(\"M4\") {\n\t\treturn s.makeAnew(now, r)\n\t}\n" +
					"\tif err != nil {\n\t\treturn err\n\t}\n\trec.signalled = false",
			}},
			Checks: []Check{simulated("truthful")},
		},
		{
			ID: "M5", Bug: "renewals do not go on after one that failed", Known: "Redisson #3194",
			Edits: []Edit{{
				File: "internal/core/renew.go", Old: "\t\tif g.IsHeld() {\n\t\t\tg.NotBefore =",
				New: "\t\tif isMutant(\"M5\") {\n\t\t\tg.NotBefore = trust.Never\n\t\t} else " +
					"if g.IsHeld() {\n\t\t\tg.NotBefore =",
			}},
			Checks: []Check{simulated("steady", lossy)},
		},
	}
}

// remains are bugs of what stays when a request or a hold is over: what was not undone, and the largest token.
func remains() []Mutant {
	return []Mutant{
		{
			ID: "M9", Bug: "what was refused or not answered, as by too few replicas, is not undone and stays counted",
			Known: "Redisson #4706",
			Edits: []Edit{{
				File: "internal/shell/request.go", Old: "\tif !definite {\n\t\tundoRequest",
				New: "\tif !definite && !isMutant(\"M9\") {\n\t\tundoRequest",
			}},
			Checks: []Check{simulated("residue", lossy)},
		},
		{
			ID: "M10", Bug: "tokens are a counter that ends with its key",
			Edits: []Edit{
				{
					For: []Where{Simulation}, File: "memlock/tokens.go", Old: "if clock <= last {",
					New: "if clock <= last || isMutant(\"M10\") {",
				},
				{
					For: []Where{Simulation}, File: "memlock/queue.go", Old: "\t\ts.locks[r.Key] = l\n",
					New: "\t\ts.locks[r.Key] = l\n\t\tif isMutant(\"M10\") {\n\t\t\tl.last = 0\n\t\t}\n",
				},
				{
					For: []Where{Torture}, File: "redislock/scripts/acquire_fast.lua",
					Old: "\tlocal token, tokens, tail = now, ARGV[3], ARGV[4]\n\tif known[2] and known[2] >= now then",
					New: "\tlocal token, tokens, tail = string.format('1%015.0f', call('INCR', KEYS[2] .. ':n')), " +
						"'1', ARGV[4]\n\tcall('PEXPIRE', KEYS[2] .. ':n', 300)\n\tif false then",
				},
			},
			Checks: []Check{simulated("tokens"), tortured("K3", "redis", "none", "4s")},
		},
	}
}

// helpers are functions that edits call, in files of their own.
var helpers = map[string]string{
	"internal/shell/helpers_of_mutants.go": `package shell

import "time"

// sentOf is M2.
func sentOf(sent time.Time) time.Time {
	if isMutant("M2") {
		return time.Now()
	}
	return sent
}

// dawdle is M26.
func dawdle() { time.Sleep(300 * time.Millisecond) }
`,
	"internal/trust/helpers_of_mutants.go": `package trust

import "time"

// step is M3: how far the wall clock is ahead. It is set forth and back by two seconds, as nobody
// can do to that of a bubble.
func step() time.Duration {
	if isMutant("M3") && time.Now().Unix()/7%2 == 0 {
		return 2 * time.Second
	}
	return 0
}
`,
	"memlock/helpers_of_mutants.go": `package memlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// releaseAny is M1.
func (s *state) releaseAny(now time.Time, r *driver.Release) error {
	err := s.release(now, r)
	l := s.locks[r.Key]
	if err == nil || l == nil || !isMutant("M1") {
		return err
	}
	for _, g := range l.groups {
		for _, h := range g.holds {
			if h.phase == held {
				other := *r
				other.ID = h.ref.id
				return s.release(now, &other)
			}
		}
	}
	return err
}

// makeAnew is M4.
func (s *state) makeAnew(now time.Time, r *driver.Renewal) error {
	l := s.locks[r.Key]
	if l == nil {
		l = &lock{key: r.Key, last: s.floor}
		s.locks[r.Key] = l
	}
	rec := &record{entry: entry{ref: ref{r.Key, r.ID}}, since: now, req: driver.Request{
		Key: r.Key, ID: r.ID, Owner: r.Owner, Weight: 1, Limit: 1, Tokens: 1, Lease: r.Lease,
	}}
	s.records[rec.ref] = rec
	s.grant(now, l, rec)
	return nil
}
`,
}
