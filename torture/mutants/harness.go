package mutants

// ofTheHarness are bugs that are there for the checks of runs with real processes, each of which has to notice one.
func ofTheHarness() []Mutant {
	return []Mutant{
		{
			ID: "M24", Bug: "what a renewal was answered is not believed, so holds are lost without any fault",
			Edits: []Edit{{
				File: "internal/core/renew.go", Old: "// an answer that comes after the end does not revive it\n",
				New: "// an answer that comes after the end does not revive it\n" +
					"\tif err == nil && isMutant(\"M24\") {\n\t\treturn nil\n\t}\n",
			}},
			Checks: []Check{simulated("steady", lossy), long(tortured("K6", "redis", "none", "12s"))},
		},
		{
			ID: "M25", Bug: "the end of a lease is believed only when the engine says so",
			Known: "a watchdog without a deadline",
			Edits: []Edit{
				{
					File: "internal/core/end.go", Old: "now >= end {\n\t\tc.LoseAndRelease(g,",
					New: "now >= end && !isMutant(\"M25\") {\n\t\tc.LoseAndRelease(g,",
				},
			},
			Checks: []Check{long(tortured("K5", "redis", "server-stop", "12s"))},
		},
		{
			ID: "M26", Bug: "a wait goes on for a while when its context has ended",
			Edits: []Edit{{
				File: "internal/shell/wait.go",
				Old:  "\tcase <-ctx.Done():\n\t}\n\tc := ClientOf(w.Hold.Lock)\n",
				New: "\tcase <-ctx.Done():\n\t\tif isMutant(\"M26\") {\n\t\t\tdawdle()\n\t\t}\n\t}\n" +
					"\tc := ClientOf(w.Hold.Lock)\n",
			}},
			Checks: []Check{givingUp(tortured("K8", "redis", "none", "20s"))},
		},
		{
			ID: "M27", Bug: "a release leaves a key that never ends",
			Edits: []Edit{{
				File: "redislock/scripts/release_fast.lua", Old: "\t\t\tcall('DEL', KEYS[1])\n",
				New: "\t\t\tcall('DEL', KEYS[1])\n\t\t\tcall('SET', 'was:' .. KEYS[1], now)\n",
			}},
			Checks: []Check{tortured("K9", "redis", "none", "20s")},
		},
		{
			ID: "M28", Bug: "Close leaves the connection open",
			Edits: []Edit{{
				File: "redislock/driver.go", Old: "\t\terr = d.conn.Close()\n",
				New: "\t\tif !isMutant(\"M28\") {\n\t\t\terr = d.conn.Close()\n\t\t}\n",
			}},
			Checks: []Check{tortured("K10", "redis", "none", "20s")},
		},
		{
			ID: "M34", Bug: "a release that finds another owner is a loss, even if a copy of it may have been done",
			Known: "interlock before its first tag",
			Edits: []Edit{{
				File: "internal/shell/release.go",
				Old:  "told.Reason != driver.LostExpired && told.Reason != driver.LostTaken\n",
				New:  "told.Reason != driver.LostExpired && (told.Reason != driver.LostTaken || isMutant(\"M34\"))\n",
			}},
			Checks: []Check{
				ofTheCore("TestUnlock_WhoseCopyFindsNothing_IsALossOnlyIfNoCopyCanHaveEndedIt", "another owner has it"),
				because("before its deadline, and nothing had ended it",
					givingUp(tortured("K6", "redis", "lose-ends", "20s"))),
			},
		},
	}
}

// givingUp has many waiters give up, so that a run has enough of what happens then.
func givingUp(c Check) Check {
	c.Args = append(c.Args, "-cancel", "0.3")
	c.Name += ", three of ten give up"
	return c
}

// long makes holds of a run that outlast their leases, of so many locks that nobody waits for long.
func long(c Check) Check {
	c.Args = append(c.Args, "-hold", "1s", "-names", "8")
	c.Name += ", 8 locks with holds of 1 s"
	return c
}
