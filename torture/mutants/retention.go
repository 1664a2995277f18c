package mutants

// ofRetention are bugs of locks that a client keeps after their release: what it trusts, and when it gives them back.
func ofRetention() []Mutant {
	return []Mutant{
		{
			ID: "M29", Bug: "a client goes on trusting the long lease after it has asked for a short one",
			Edits: []Edit{{
				File: "internal/grants/grants.go",
				Old:  "\tg.Window = g.Window.Shorter(trust.Window{Sent: now, Lease: lease})\n",
				New: "\tif !isMutant(\"M29\") {\n" +
					"\t\tg.Window = g.Window.Shorter(trust.Window{Sent: now, Lease: lease})\n\t}\n",
			}},
			Checks: []Check{
				ofTheCore("TestRetain_ATakeOver_HasTheTrustThatIsLeft", "of trust, want what a short lease leaves"),
			},
		},
		{
			ID: "M30", Bug: "the answer to an earlier renewal outdoes the one that shortens the lease",
			Edits: []Edit{{
				File: "internal/grants/grants.go", Old: "\tif sent < g.Shortened {\n",
				New: "\tif sent < g.Shortened && !isMutant(\"M30\") {\n",
			}},
			Checks: []Check{
				ofTheCore("TestRetain_ARenewalThatShortens_IsNotOutdoneByAnEarlierAnswer",
					"of trust, and the engine has given"),
			},
		},
		{
			ID: "M31", Bug: "a retained lock is not given back when another process asks",
			Edits: []Edit{{
				File: "internal/shell/release.go",
				Old:  "\tif r := g.Retained(); r != nil {\n\t\tc.Retention.Recall(g.Lock)\n",
				New: "\tif r := g.Retained(); r != nil && !isMutant(\"M31\") {\n" +
					"\t\tc.Retention.Recall(g.Lock)\n",
			}},
			Checks: []Check{
				ofTheCore("TestRetain_AnotherClientThatAsks_GetsTheLockAtOnce", "it took .*, want at most 0s"),
				retaining(tortured("K7", "redis", "none", "20s")),
			},
		},
		{
			ID: "M32", Bug: "a holder who was told that another waits retains the lock all the same",
			Edits: []Edit{{
				File: "internal/grants/next.go", Old: "\treturn g.Recallable && !g.Recalled && ",
				New: "\treturn g.Recallable && (!g.Recalled || isMutant(\"M32\")) && ",
			}},
			Checks: []Check{
				ofTheCore("TestWanted_IsClosedWhenAnotherAsks_AndTheLockIsNotRetainedThen",
					"the other got in .* after Unlock"),
			},
		},
		{
			ID: "M33", Bug: "a retained lock keeps the lease of the hold, which outlasts a client that dies",
			Edits: []Edit{{
				File: "internal/grants/next.go",
				Old:  "RetainLease() time.Duration { return min(RetainLease, t.Lease) }",
				New: "RetainLease() time.Duration {\n\tif isMutant(\"M33\") {\n\t\treturn t.Lease\n\t}\n" +
					"\treturn min(RetainLease, t.Lease)\n}",
			}},
			Checks: []Check{
				ofTheCore("TestRetain_ByAClientThatDies_KeepsOthersOutForAShortLease", "it took .*, want at most 2.5s"),
			},
		},
	}
}

// ofTheCore is a test of the core itself, in virtual time.
func ofTheCore(test, says string) Check {
	return Check{Name: test, Where: Core, Test: "^" + test + "$", Says: says}
}

// retaining makes a run one with the workload retain.
func retaining(c Check) Check {
	c.Args = append(c.Args, "-workload", "retain")
	c.Name += ", workload retain"
	return c
}
