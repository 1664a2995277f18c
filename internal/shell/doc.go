// Package shell is what stands around the state machine of package core: it asks the engine, waits for its answers,
// renews, releases, searches for deadlocks, and tells users.
//
// Its one rule: whatever blocks is done here and without the machine's mutex, and what becomes of a lock is decided in
// core and under it. A function takes the mutex by [Client.Lock], has the machine change, and gives it up by
// [Client.Unlock], which does the effects that the change has left (effects.go). In between it calls no driver and no
// user's code. The one exception is Confirmed of a driver's session, which reads a time.
//
// The package knows neither the Options nor the Observer of the root package, because their fields are documentation
// and stand there. It has a [Config], [Listeners] and [Facts] instead, which the root fills in and translates.
//
// The files, each a noun:
//
//   - client.go: a client, its beginning and Close;
//   - effects.go: the machine's mutex, and what is done when it has been given up;
//   - acquire.go: Lock and TryLock, from the call to a line, a local engine or a request;
//   - direct.go: the same for readers, writers and permits, which stand in no line;
//   - request.go: one request on its way to the engine and back, and what becomes of its answer;
//   - wait.go: the caller's side of a Lock that is not answered at once, and LockOptions.Wait;
//   - release.go: Unlock, and releases that are repeated until their outcome is known;
//   - renew.go: batches of renewals, and the goroutine of the scheduler;
//   - hold.go: Extend, Upgrade and Downgrade, and losses that the engine reports;
//   - lock.go: the label of a call, and the limit of a semaphore that changes;
//   - context.go: the contexts of a hold, and the owner that a context carries;
//   - condwait.go: the steps of Cond.Wait;
//   - handle.go: holds that go on in another client;
//   - deadlock.go: the search in one client, and over several;
//   - watch.go: hints for those that watch without a hold;
//   - tell.go: what users hear, and what becomes of a panic of theirs;
//   - call.go: questions that are no acquisitions, and their repetition;
//   - errors.go: the classes of errors, and what is wrong with a call;
//   - suspended_linux.go, suspended_other.go: how long the machine was suspended.
package shell
