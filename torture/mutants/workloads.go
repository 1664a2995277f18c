package mutants

// ofWorkloads are bugs that only the rarer uses of a lock show: a restart, an upgrade, a condition, a long queue.
func ofWorkloads() []Mutant {
	return []Mutant{
		{
			ID: "M20", Bug: "who comes back under its old name is taken for the one before, and has its hold",
			Edits: []Edit{{
				File: "internal/shell/request.go", Old: "\tif m.Terms.Share.Direct {\n\t\tr.Mode, r.Limit",
				New: "\tif isMutant(\"M20\") {\n\t\tr.Owner, r.Named = c.Config.ClientName, true\n\t}\n" +
					"\tif m.Terms.Share.Direct {\n\t\tr.Mode, r.Limit",
			}},
			Checks: []Check{
				{
					Name: "TestWhoComesBackUnderItsName_DoesNotHaveItsOldHold", Where: Simulation,
					Test: "^TestWhoComesBackUnderItsName_DoesNotHaveItsOldHold$",
					Says: "it came back and has the old hold",
				},
				tortured("K3", "redis", "kill", "15s"),
			},
		},
		{
			ID: "M21", Bug: "a signal for one wakes nobody",
			Edits: []Edit{{
				File: "redislock/scripts/cond_signal.lua", Old: "\twhile wake(before) do\n",
				New: "\twhile all and wake(before) do\n",
			}},
			Checks: []Check{
				{
					Name: "TestScripts_OfConditions: without memory a signal arrives", Where: Redis,
					Test: "^TestScripts_OfConditions_InStatesThatAreHardToReach$/^without_memory_a_signal_arrives$",
					Says: "who is woken: got <",
				},
				because("waited in vain", tortured("K11", "redis", "none", "20s")),
			},
		},
		{
			ID: "M22", Bug: "an upgrade does not wait for the other readers",
			Edits: []Edit{{
				File: "redislock/scripts/acquire.lua", Old: "local free = verdict == 'reenters' or fits(",
				New: "local free = verdict == 'reenters' or verdict == 'upgrades' or fits(",
			}},
			Checks: []Check{
				ruleOfTheScripts("queue", "12 an upgrade goes to the front, and keeps new readers out",
					"the upgrade: got granted"),
				because("beside", tortured("K11", "redis", "none", "20s")),
			},
		},
		{
			ID: "M23", Bug: "who comes last is served first",
			Edits: []Edit{
				{
					For: []Where{Redis}, File: "redislock/scripts/acquire.lua", Old: "\t\tenter(after, me)\n",
					New: "\t\tenter(first - 1, me)\n",
				},
				{
					For: []Where{Torture}, File: "redislock/scripts/acquire_fast.lua",
					Old: "\t\tlocal number, after, since = f[3], f[3] + 1, now\n",
					New: "\t\tif not f[4] then\n\t\t\tf[2] = string.format('%.0f', f[2] - 1)\n" +
						"\t\t\tcall('HSET', KEYS[1], 'a', f[2])\n\t\tend\n" +
						"\t\tlocal number, after, since = f[2], f[3], now\n",
				},
			},
			Checks: []Check{
				ruleOfTheScripts("queue", "12 a weight that does not fit waits, and nobody overtakes it",
					"pushed: got G c, G b"),
				because("(came later|was not got)", tortured("K7", "redis", "none", "15s")),
			},
		},
	}
}

// because wants a run's check to give that reason first.
func because(says string, c Check) Check {
	c.Says += ".*" + says
	return c
}
