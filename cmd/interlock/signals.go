// Signals: which ones are caught, when, and who reads them. run.go begins to catch them before the engine is opened;
// a wait reads them through endWait, a job in its own loop (job.go).

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// deadly are the signals that end a wait for a lock, and that are forwarded to a job.
// KILL and STOP cannot be caught. PIPE is left to Go's runtime, which ends a program whose stdout was closed: a
// pipeline wants that. CHLD, ALRM and those of faults are about this process and not about a job.
var deadly = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// forJobs are those that matter only while a job runs.
// During a wait they have their usual effects: ^Z stops it, and a change of the window's size does nothing.
var forJobs = []syscall.Signal{syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}

// signals are what this process receives while it waits for a lock and while its job runs. Its methods are called from
// one goroutine; only the one of endWait reads ch beside it, and never at the same time.
type signals struct {
	// ch is filled by the runtime, which drops what does not fit. It has room for every signal to be pending a few
	// times.
	ch chan os.Signal
	// off are the signals that were ignored when the first job was started. Whoever started us has switched them off.
	// Kept from the first job on, because later this process ignores SIGTTOU by itself.
	off     signalSet
	started bool // a job was started
}

// signalSet has a bit for each signal, as /proc has.
type signalSet uint64

// has reports whether sig is in the set. Signals count from 1, bits from 0.
func (s signalSet) has(sig syscall.Signal) bool { return s&(1<<(sig-1)) != 0 }

// catchSignals begins to catch the deadly ones.
//
// exec keeps ignored signals ignored and resets caught ones. So if HUP were caught here, a job under nohup would die of
// it.
func catchSignals() *signals {
	s := &signals{ch: make(chan os.Signal, 32)}
	// What whoever started us has switched off stays off, for the job too: nohup does that with HUP, and shells do it
	// with INT for what they start in the background.
	for _, sig := range deadly {
		if !signal.Ignored(sig) {
			signal.Notify(s.ch, sig)
		}
	}
	return s
}

// stop ends catching. Signals have their default effect from then on.
func (s *signals) stop() { signal.Stop(s.ch) }

// beforeJob makes a second job find all signals as the first one did. A signal that this process ignores is ignored in
// a job too, and SIGTTOU is ignored since the first job was started. It is caught and released once: a signal that was
// caught has its default effect in a job, and Go's runtime goes on catching it here.
func (s *signals) beforeJob() {
	if !s.started {
		s.started, s.off = true, ignoredSignals()
		return
	}
	if !s.off.has(syscall.SIGTTOU) {
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, syscall.SIGTTOU)
		signal.Stop(caught)
	}
}

// jobStarted begins to catch what matters to a job that runs, and ignores SIGTTOU, which would stop this process when
// it changes the foreground from the background. It comes after the start, so that the job does not inherit that.
//
// WINCH is forwarded because a full-screen command outside the foreground group is not told of a new size; TSTP and
// CONT because the shell knows this process and not the command.
func (s *signals) jobStarted() {
	for _, sig := range forJobs {
		if !s.off.has(sig) {
			signal.Notify(s.ch, sig)
		}
	}
	signal.Ignore(syscall.SIGTTOU)
}

// endWait returns a context that a deadly signal cancels with a *signalError. done stops listening, and after it the
// signals are the caller's to read from ch. A second signal, during what the first one has caused, has its default
// effect. Signals that are caught since an earlier job do here what they do before the first one.
//
// The goroutine is ended and awaited by done, so that signals have exactly one reader at any time. Otherwise a wait
// that is over could swallow a TERM that is meant for the job.
func (s *signals) endWait(parent context.Context) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	quit, quitted := make(chan struct{}), make(chan struct{})
	// This goroutine ends by done, which waits for it: it must not take a signal that the job should get.
	go func() {
		defer close(quitted)
		for {
			select {
			case sig := <-s.ch:
				switch sig {
				// ^Z stops a wait as it would stop any command. The place in the queue may be lost meanwhile.
				case syscall.SIGTSTP:
					stopOurselves()
				// Caught since an earlier job, under elect --again; they end nothing.
				case syscall.SIGCONT, syscall.SIGWINCH:
				default:
					// From here a second ^C ends this process at once, whatever it still undoes. The engine frees what
					// is left behind when its lease, session or process ends.
					s.stop()
					cancel(&signalError{sig.(syscall.Signal)})
					return
				}
			case <-quit:
				return
			}
		}
	}()
	return ctx, func() {
		close(quit)
		<-quitted
	}
}

// stopOurselves stops our process group, as SIGTSTP would, and returns when it has been continued. It sends SIGSTOP,
// because Go's runtime does not restore the default effect of a signal that was once caught.
//
// In the session leader's group it does nothing: no shell with job control has put us there, so nobody would continue
// us. The kernel refuses SIGTSTP for the same reason.
func stopOurselves() {
	if session, err := unix.Getsid(0); err != nil || session == unix.Getpgrp() {
		return
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(0, syscall.SIGSTOP) // our own group: always allowed
	// Kill may return a moment before the stop reaches this thread.
	select {
	case <-continued:
	// If the stop never comes, nobody sends SIGCONT either: a wait without an end would hang here.
	case <-time.After(100 * time.Millisecond):
	}
}

// signalName is the name that kill -l shows, such as SIGTERM.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return "signal " + itoa(int(s))
}
