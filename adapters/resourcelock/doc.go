// Package resourcelock has a lock for the elector of Kubernetes' client library
// (k8s.io/client-go/tools/leaderelection): a [Lock] is its resourcelock.Interface over an election of interlock, so
// that controllers elect a leader on Redis, a SQL database or any other engine, with or without a cluster.
//
//	lock, err := resourcelock.New(locks, "my-controller", hostname+"_"+uuid)
//	ctx, cancel := lock.Context(ctx)
//	defer cancel()
//	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock, ...})
//
// # Who decides
//
// The engine does. client-go compares records and measures time itself; here that only says when it asks. Create and
// Update succeed only if this process holds the election, and is sure to hold it for the LeaseDuration that follows.
// Each of them renews the hold, and nothing else does: if the elector stops, so does the hold. The engine's lease is
// about a quarter longer than LeaseDuration, which is the time for the engine's answer.
//
// Get asks the engine who leads. Its record is new each time, because the engine has just confirmed the leader: no
// candidate counts a leader out by its own clock, and no clocks are compared. When the engine has no leader any more,
// the next candidate that asks leads.
//
// # Losing the lead
//
// An elector whose Update fails tries again for RenewDeadline, and stops then. If the engine cannot be reached that
// is early enough, provided that RenewDeadline and RetryPeriod together are at most LeaseDuration, as in the
// defaults. If the hold is taken away ([interlock.Client.Break], a server that forgets) or the process stood still,
// others may lead meanwhile. Therefore run the elector with [Lock.Context]: it ends the moment this process learns of
// the loss, and with it the context of OnStartedLeading; OnStoppedLeading follows. The end of the hold's time is
// known by this process's own clock, any other loss from the next Update. A lost lead is not taken again before the
// elector has stopped.
//
// What the leader writes may still be under way. Give [Lock.Stamp] to the resource, see package fence.
//
// # What it cannot do
//
// Coordinated leader election needs Kubernetes' own leases. AcquireTime and LeaderTransitions are as of the beginning
// of the term. LeaderTransitions goes on if a candidate that has seen the last leader leads next, and starts at 0 if
// not.
package resourcelock
