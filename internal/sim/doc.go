// Package sim is a deterministic simulation of clients, network and engine. It has tests only. They run the portable
// core as it is, on the reference engine as it is, in virtual time (testing/synctest), and put between the two a
// network that loses, delays, reorders and repeats messages, and a nemesis that partitions links, hangs the engine,
// and crashes, pauses and re-opens processes. One seed decides everything, and the same seed gives the same run to
// the nanosecond.
//
// # Running it
//
//	go test ./internal/sim                             # the default number of seeds
//	go test ./internal/sim -sim.seeds=2000             # more of them
//	go test ./internal/sim -run 'Simulation$' -v -sim.seed=7   # one, with its log
//	interlock torture t0 -row 2                        # other seeds, together with the models
//	INTERLOCK_LONG=1 go test ./internal/sim -run Crowd -v -sim.draw   # 10,000 clients, and their picture
//
// # What makes a run exact
//
// Goroutines of a bubble run in parallel within one virtual instant, so nothing may depend on their order there.
// Every delay has a random number of nanoseconds, so two actors practically never act at the same instant. Randomness
// is never shared: each worker, process and nemesis has a generator of its own, and each message one that is seeded
// with the name of what it carries, because the core sends several messages at one instant from several goroutines.
// The log is sorted by time and text.
//
// # What is modelled
//
// Processes with several workers each: Lock, TryLock, named owners across processes, re-entry, local passes, several
// leases of one name, NoRenew, MaxHold, Extend, contexts that end at any time, Unlock with a context that has ended,
// Close in the middle, crashes, and an operator who breaks locks. The driver sends idempotent requests, repeats a
// waiting request as its heartbeat, and gives up when an answer stays out. The engine drops a waiter whose heartbeats
// stay out. A pushed grant is counted from the engine's own instant, moved by the clock difference that an earlier
// exchange showed. Under each lock lie two resources that the workers read, change and write over the same kind of
// network: one with a fence and one without.
//
// # What is not modelled
//
// Clocks that run at different rates or jump. Failover and an engine that forgets: the engine here is alone and
// hangs, but never dies. A process cannot be stopped in a bubble, so a pause freezes its network and its workers
// (they notice nothing and do what they were about to do when it ends), while the core's own timers run on. That is
// harsher on the resources than on the core: the losses that its timers tell during a pause are told to nobody. Slow
// shards of one engine, and connections as such: messages are lost one by one, and a partition loses all.
//
// # Crowds
//
// crowd_test.go is about growth and not about faults: up to 10,000 clients want one lock, over a network that loses
// nothing, of a server that serves one message after the other. It says what a grant costs in time and messages, and
// draws docs/simulated-growth.svg; docs/evidence/bench/redis-growth.md explains it.
//
// # What is checked
//
// Each violation names its checker; see the constants in report_test.go. Besides the runs full of faults there are
// quiet ones, in which no hold may be lost or run out, and ones in which only single messages are lost, in which no
// hold may be lost either. The counts of what happened must not be zero, and every flaw of flaw_test.go must be
// found.
package sim
