// Package core is the state machine of a client: the lines of waiters, what the engine has granted, the holds on that,
// and what happens when a hold begins, ends, is renewed, is kept or changes its mode.
//
// Its one rule: everything changes under [Machine].Mu, at one instant for each event, and nothing else happens there.
// The machine calls no engine and no user, starts no goroutine, never waits, and reads a clock in [Machine.Now] alone.
// What a change demands (a request, a release, a cancelled context) is an [Effect], and package shell does it once the
// mutex has been given up. What cannot wait for that is asked of the interface [Shell], none of which blocks.
//
// Who gets the lock next is decided in three places. A [Line] says who is first in this process (line.go).
// [EngineHold.GoOn] is called for a grant that nobody holds any more (enginehold.go). It asks Grant.Next of package
// grants, and does what that says: the line, the next Lock of this client, or the engine.
//
// The files, each a noun:
//
//   - machine.go: the state of a client, the effects, the instant;
//   - lock.go: a name and the terms on which it is asked for;
//   - line.go: the goroutines of this process that wait for one lock, and the request on their behalf;
//   - enginehold.go: what the engine gave, from the request until it is given back or lost;
//   - hold.go: what a Lock has taken, as its owner has it, and the listeners for its end;
//   - end.go: releases, losses, and holds that are left to run out;
//   - owner.go: logical activities, what each has, and the table of named ones;
//   - renew.go: the scheduler, and what an answer to a renewal changes;
//   - retain.go: what the client keeps for its own next Lock;
//   - cooldown.go: what nobody gets yet, after a MinHold or a LockDelay;
//   - convert.go: upgrades and downgrades;
//   - context.go: the context of a question that is asked in the goroutine of a call.
package core
