// Package handoff is an exhaustive model of how a lock passes from one owner to the next: over a network that loses,
// delays and reorders, between clients that crash, cancel and retry, and inside a process. Its tests visit every state
// that the model can reach and show two things: with all rules of the protocol no state is at fault, and without any
// one of them some state is. Nothing in the product imports this package.
//
// # What is modelled
//
// Five small models share one search ([Search], breadth first, so that the story of a fault is as short as any):
//
//   - leases: try, renewal, release and undo of one lock by two or three clients. Rules 1 and 3, and the trust window.
//   - queues: the engine's queue, heartbeats, grants by push and their claims, two or three clients. Rules 3 to 6.
//   - locals: two owners of one process and a remote one, passes inside the process, re-entry, loss. Rules 2, 13, 14.
//   - tokens: the fencing numbers of grants, passes and failovers. Rule 7.
//   - retains: a client that keeps its grant after an Unlock for its next Lock, and a remote client that wants the lock
//     and has it recalled. The rules "Retain" and "Wanted".
//
// Time is a tick that everybody feels at once: local clocks run at the engine's rate, which is the protocol with a
// drift allowance of nothing. Clocks need not agree on what time it is; only differences enter the models, and all
// times in a state are relative, so there is no end of time to reach. A message may arrive in the tick in which it was
// sent, at any later one, or never, before or after any other; copies come from clients that ask again. A script of the
// engine is one step.
//
// # What is not modelled
//
// Clocks that drift or jump, engines that forget (other than the tokens' failover), sessions, weights, shared modes,
// MinHold, Break, processes that stand still (a stop is a crash here; one that ends late is a slow message), and more
// messages under way at once than the bounds of each test say. Order and fairness are looked at nowhere. A pushed grant
// goes back to the head of the queue once before it goes to the tail; the protocol allows twice. Passes need trust
// enough and the right owner; the other conditions for passing are about comfort, not safety. In retains only one of
// the two clients retains, the waiter never gives up its place, and a try does not ask for the recall.
//
// # What counts as a fault
//
// Two owners who believe to be inside, each by its own deadline. An engine that holds the lock for a request which its
// client has done with, although nothing is under way that would end that: it covers a grant after a confirmed release
// or undo. A waiter that is not served in the stated time once the faults have stopped: in every state with nothing
// under way the models let clients and time run on without faults ("heal") and count. A holder who is put out although
// the engine has the lock for it. A token that is not larger than all before it.
//
// The story of a lost waiter ends where the faults stop. It does not tell the run without faults that follows.
//
// # The rules
//
// [Rules] has a switch for each. The numbers are used in the names of the tests.
//
//   - 1: renewal and release match the id of one hold, never its owner.
//   - 2: anonymous owners do not re-enter through the engine; named ones do, and are not passed on locally.
//   - 3a: an id that was released or undone is refused for as long as a copy of its request may arrive.
//   - 3b: ids are never used again.
//   - 3c: a "queued" that is older than the grant is ignored.
//   - 3d: an acquire that was cancelled, or refused after it had been sent more than once, is undone; undo and release
//     are sent until they are confirmed.
//   - 4: a heartbeat is the acquire script: it evicts the expired and grants the head.
//   - 5: a pushed grant is a claim of short life, and goes only to a waiter that was heard of within the time of a
//     claim.
//   - 6: its deadline is the claim time after the engine's instant of granting, and the engine's clock is compared by
//     the sending of an earlier request.
//   - 7: a block of tokens is granted only if the last token is behind the clock, and its end is stored.
//   - 13: a local pass needs trust enough, hands its deadline on, and does not happen after a loss.
//   - 14: a loss sends the waiters inside the process to the engine.
//   - Trust: a lease is trusted from before its request was sent, and a loss is final.
//   - Retain, against two holders: the engine does not shorten a hold by a renewal of an earlier pass than it has heard
//     of. The client cuts its trust before it sends a shortening. From then on no answer to an earlier request, be it a
//     renewal or a copy of the acquire, extends the trust. A Lock that takes over has the trust that is left, and does
//     not take over what is being given back.
//   - Retain, against long waits: a retained grant has a short lease. An earlier request that arrives after the
//     shortening does not lengthen it, so a dead client keeps others out for the short lease only.
//   - Wanted: each heartbeat of a waiter tells the client that has the lock, and so does each answer to a renewal. The
//     client gives a retained grant back at once, and does not retain one that it holds.
//
// # How to read a story
//
// Run go test -v -run Rule ./internal/handoff. Each line is one step, followed by what it changed: A, B and C are
// clients, A2 is A's second request (in locals, a/1 and a/2 are two calls by owner a), "arrives" means that the engine
// or the client acted on the message, and "trusting it for 2 ticks" is the rest of the window after which the client
// considers the lock lost. Messages that could no longer have an effect are left out of states, so an answer that
// nobody waits for disappears without a line of its own. The last line names the fault.
//
// The bounds of the sound protocol take seconds; with -race they are smaller. Wide ones, for a minute or more on an
// idle machine: go test ./internal/handoff -args -wide.
package handoff
