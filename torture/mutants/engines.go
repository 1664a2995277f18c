package mutants

// ofRedis are bugs of redislock and of its scripts.
func ofRedis() []Mutant {
	return []Mutant{
		{
			ID: "M7", Bug: "a waiter listens for its wake-up only after it has looked", Known: "Redisson #1763",
			Edits: []Edit{{
				File: "redislock/acquire.go",
				Old:  "\tif err := a.listen(ctx); err != nil {\n\t\treturn err\n\t}\n\ta.setTail('s')",
				New: "\tif isMutant(\"M7\") {\n\t\tdefer func() { _ = a.listen(ctx) }()\n" +
					"\t} else if err := a.listen(ctx); err != nil {\n" +
					"\t\treturn err\n\t}\n\ta.setTail('s')",
			}},
			Checks: []Check{
				ruleOfTheDriver("10 in a Cluster nobody queues before the subscription is confirmed",
					"and nobody listens"),
			},
		},
		{
			ID: "M8", Bug: "a grant counts although too few replicas have it", Known: "Redisson #3994",
			Edits: []Edit{{
				File: "redislock/acquire.go", Old: "answer.Acked < a.d.opts.Replicas {",
				New: "answer.Acked < a.d.opts.Replicas && !isMutant(\"M8\") {",
			}},
			Checks: []Check{ruleOfTheDriver("9 a grant that too few replicas have is none", "it is returned with")},
		},
		{
			ID: "M13", Bug: "a grant by push lasts for the whole lease, claimed or not",
			Edits: []Edit{
				{
					For: []Where{HandOff}, File: "internal/handoff/rules.go", Old: "ShortClaim: true,",
					New: "ShortClaim: !isMutant(\"M13\"),",
				},
				{
					For: []Where{Redis, Torture}, File: "redislock/scripts/release_fast.lua",
					Old: "'P1 ' .. ms + claim .. ' 1 '", New: "'P1 ' .. ms + 60000 .. ' 1 '",
				},
			},
			Checks: []Check{
				{
					Name: "model of the hand-off: who waits is lost", Where: HandOff,
					Test: "^TestSoundProtocol_InTheBoundsThatShowARuleMissing_HasNoFault$",
					Says: "the sound protocol has a fault: .*",
				},
				ruleOfTheScripts("waiting", "5 a pushed grant is short until it is claimed", "want granted"),
				// among whom are some who do not hear of the push and die
				tortured("K7", "redis", "kill-asking", "20s"),
			},
		},
		{
			ID: "M14", Bug: "a script that the server has forgotten is not sent again",
			Edits: []Edit{{
				File: "redislock/conn/retry.go", Old: "refusedIf(t.Evals > mostEvals, err)",
				New: "refusedIf(t.Evals > mostEvals || isMutant(\"M14\"), err)",
			}},
			Checks: []Check{
				{
					Name: "TestCall_OfAScriptThatTheServerForgot_SendsTheSource", Where: RueidisConn,
					Test: "^TestCall_OfAScriptThatTheServerForgot_SendsTheSource$", Says: "NOSCRIPT",
				},
			},
		},
	}
}

// ofOthers are bugs of the other drivers.
func ofOthers() []Mutant {
	return []Mutant{
		{
			ID: "M6", Bug: "a wake-up grants, and nobody looks again", Known: "etcd #11456",
			Edits: []Edit{{
				File: "etcdlock/wait.go", Old: "\t\t\terr = a.lookAtPredecessor(ctx, changed)\n",
				New: "\t\t\tif isMutant(\"M6\") {\n\t\t\t\ta.own(e.revision, queueView{revision: e.view.revision, " +
					"granted: true})\n" +
					"\t\t\t} else {\n\t\t\t\terr = a.lookAtPredecessor(ctx, changed)\n\t\t\t}\n",
			}},
			Checks: []Check{{
				Name: "TestWakeUp_OfAWaiterWhoseKeyIsGone_GrantsNothing", Where: Etcd,
				Test: "^TestWakeUp_OfAWaiterWhoseKeyIsGone_GrantsNothing$", Says: "a waiter whose key was gone got",
			}},
		},
		{
			ID: "M15", Bug: "a release deletes the key, whoever has made it", Known: "etcd #22082",
			Edits: []Edit{{
				File: "etcdlock/release.go", Old: "\treturn isOf(s.queueKey, s.revision)\n",
				New: "\tif isMutant(\"M15\") {\n\t\treturn clientv3.Compare(clientv3.CreateRevision(s.queueKey), " +
					"\">\", 0)\n\t}\n" +
					"\treturn isOf(s.queueKey, s.revision)\n",
			}},
			Checks: []Check{{
				Name: "TestRelease_OfAKeyThatWasCreatedAnew_LeavesIt", Where: Etcd,
				Test: "^TestRelease_OfAKeyThatWasCreatedAnew_LeavesIt$", Says: "the newer key is",
			}},
		},
		{
			ID: "M16", Bug: "the time that a majority took is trusted", Known: "go-redsync #71",
			Edits: []Edit{{
				File: "redislock/redlock/votes.go", Old: "\treturn sent, last.Sent",
				New: "\tif isMutant(\"M16\") {\n\t\tsent = time.Now()\n\t}\n\treturn sent, last.Sent",
			}},
			Checks: []Check{
				ruleOfRedlock("the time that the majority took is not trusted", "and the lease is counted from"),
			},
		},
		{
			ID: "M17", Bug: "after a lost reply a node of another session is taken for the own one",
			Known: "CURATOR-604",
			Edits: []Edit{{
				File: "zklock/acquire.go", Old: "case got.stat.EphemeralOwner == l.s.id:",
				New: "case got.stat.EphemeralOwner == l.s.id || isMutant(\"M17\"):",
			}},
			Checks: []Check{{
				Name: "TestLostCreate_DoesNotTakeAForeignNodeForItsOwn", Where: ZooKeeper,
				Test: "^TestLostCreate_DoesNotTakeAForeignNodeForItsOwn$", Says: "behind the foreign node",
			}},
		},
		{
			ID: "M19", Bug: "permits are not counted",
			Edits: []Edit{{
				File: "redislock/scripts/rules.lua", Old: "r[WEIGHT] <= capacity() - used",
				New: "r[WEIGHT] <= capacity()",
			}},
			Checks: []Check{
				ruleOfTheScripts("queue", "12 a weight that does not fit waits, and nobody overtakes it",
					"a big one: got granted"),
				tortured("K11", "redis", "none", "20s"),
			},
		},
		{
			ID: "M18", Bug: "a majority's token is not written back to it",
			Edits: []Edit{{
				File: "redislock/redlock/round.go", Old: "\t\tvotes, err = rd.confirm(ctx, tokens)\n",
				New: "\t\tif !isMutant(\"M18\") {\n\t\t\tvotes, err = rd.confirm(ctx, tokens)\n\t\t}\n",
			}},
			Checks: []Check{ruleOfRedlock("tokens grow although no node sees every grant", "token [0-9]+ after")},
		},
	}
}

func ruleOfTheDriver(rule, says string) Check {
	return Check{
		Name: "rule " + rule, Where: Redis, Test: "^TestRules_OfTheDriver_AreKept$/^" + spaced(rule) + "$", Says: says,
	}
}

// ruleOfTheScripts leaves out the tests below the rule, which take it out of the scripts themselves.
func ruleOfTheScripts(group, rule, says string) Check {
	return Check{
		Name: "rule " + rule, Where: Redis, Says: says,
		Test: "^TestRules_OfTheScripts_AreKeptAndNecessary$/^" + group + "$/^" + spaced(rule) + "$/^$",
	}
}

func ruleOfRedlock(rule, says string) Check {
	return Check{
		Name: "rule: " + rule, Where: Redlock, Test: "^TestRules_AreKeptAndNecessary$/^" + spaced(rule) + "$",
		Says: says,
	}
}
