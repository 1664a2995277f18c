package main

// onClient begins the names of the scenarios of programs that have a client of Redis already, and let interlock use it.
const onClient = "redis-client"

const (
	overGoRedis = "interlock-goredis"
	overRueidis = "interlock-rueidis"
	bsm         = "bsm-1ms"

	// asByURL is how much more interlock may cost over a rueidis client than with connections of its own.
	asByURL = 1.15
)

// The bounds over a go-redis client: against other libraries over such a client, and against interlock by its URL.
const (
	pairOfBSM       = 1.15
	keysOfBSM       = 1
	handoffOfRedis  = 1.3
	contendedOfOurs = 0.8
)

// clientScenarios are some of those of redisScenarios, each with one row.
func clientScenarios() []scenario {
	pair := ofClients(redisPair(false), "pair", bsm, perOp, p99, roundTrips)
	pair.wants = append(pair.wants,
		want{peer: overGoRedis, unit: perOp, base: bsm, atMost: pairOfBSM},
		want{peer: overGoRedis, unit: perOp, base: redsync, atMost: 1},
		want{peer: overRueidis, unit: perOp, base: interlockRedis, atMost: asByURL})
	keys := ofClients(redisKeys(), "keys", bsm, rate, p99)
	keys.wants = append(keys.wants,
		want{peer: overGoRedis, unit: rate, base: bsm, atLeast: keysOfBSM},
		want{peer: overRueidis, unit: rate, base: interlockRedis, atLeast: 1 / asByURL})
	handoff := ofClients(redisHandoff(), "handoff", interlockRedis, p50, p99)
	handoff.wants = append(handoff.wants,
		want{peer: overGoRedis, unit: p50, base: interlockRedis, atMost: handoffOfRedis},
		want{peer: overRueidis, unit: p50, base: interlockRedis, atMost: asByURL})
	one := ofClients(redisProcesses(1), "8x1", interlockRedis, rate, p99, worstShare)
	one.wants = append(one.wants,
		want{peer: overGoRedis, unit: rate, base: interlockRedis, atLeast: contendedOfOurs},
		want{peer: overRueidis, unit: rate, base: interlockRedis, atLeast: 1 / asByURL})
	return needRedis([]scenario{pair, keys, handoff, one})
}

// ofClients is a scenario with these peers and one row, and without demands.
func ofClients(s scenario, name, base string, row ...string) scenario {
	s.name, s.base, s.shows, s.wants = onClient+"/"+name, base, [][]string{row}, nil
	s.peers = []string{interlockRedis, overGoRedis, "interlock-goredis-pooled", overRueidis, bsm, redsync}
	s.why = "the driver over a client of rueidis cannot have calls share a run of a script, and rueidis hands a " +
		"message from goroutine to goroutine more often."
	return s
}
