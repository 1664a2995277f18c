// What comes before the lock, in the same order for run, sem and elect: the program, the signals, the engine, the
// budget. Everything that can be refused is refused here, before anybody waits.

package main

import (
	"context"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// stage is what a command that runs a job has before it asks for the lock.
type stage struct {
	*app
	path    string // of the job's program
	signals *signals
	e       *engine
	budget  budget
}

// prepare finds the job's program, begins to catch signals, and opens the engine. After an error everything is closed
// again; otherwise the caller closes the stage.
//
// Signals are caught from here on, so that none of them can end this process between the grant and the job, when nobody
// would release the lock. One that comes while the engine is opened stays in the channel, and ends the wait for the
// lock as it begins.
func (a *app) prepare(ctx context.Context, o *runOptions, name, program string) (*stage, error) {
	path, err := lookCommand(program) // before any waiting, so that a typing error shows at once
	if err != nil {
		return nil, err
	}
	s := &stage{app: a, path: path, signals: catchSignals()}
	// What an engine finds wrong with its server is the same at each run, and cron would mail it each time.
	a.tellsChecks = o.verbose
	if s.e, err = a.open(ctx, &interlock.Options{Lease: o.lease}); err != nil {
		s.close()
		return nil, err
	}
	// Asked before the lock, because the refusal names engines that have it.
	if err = s.e.has(o.kind(), name); err != nil {
		s.close()
		return nil, err
	}
	// The engine decides how long a hold lasts, so the budget can be checked only now.
	if s.budget, err = s.e.budget(o); err != nil {
		s.close()
		return nil, err
	}
	// Each command would have a memory of its own, and the lock would exclude nobody.
	if s.e.url.Scheme == "mem" {
		s.close()
		return nil, usage("mem:// lives inside one process, so a lock in it excludes nobody: name files or a server")
	}
	return s, nil
}

// close gives the engine's connections back. It does not close the client: what matters was released and reported
// before. Closing the client would try a failed release again, for up to five seconds, while somebody waits for the
// exit code of a job that has ended.
func (s *stage) close() {
	if s.e != nil {
		_ = s.e.driver.Close()
	}
	s.signals.stop()
}

// refused returns the error of a lock that was not granted. Closing the client undoes requests that were sent and not
// answered.
//
// It matters after a wait that was given up: the engine may grant the lock to a request that nobody waits for any more,
// and others would then wait for a whole lease.
func (s *stage) refused(o *runOptions, err error) error {
	_ = s.e.client.Close()
	return o.conflict(err)
}

// job is the command that runs under lease.
func (s *stage) job(lease *interlock.Lease, key driver.Key, argv []string) *job {
	return &job{
		hold: lease, budget: s.budget, signals: s.signals, say: s.say,
		name: key.Name, path: s.path, argv: argv, env: s.jobEnvironment(lease), lends: s.e.lends(key),
		connected: s.e.driver.Traits().Lifetime == driver.Sessions, orphans: s.process,
	}
}
