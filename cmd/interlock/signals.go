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
var deadly = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// forJobs are those that matter only while a job runs.
var forJobs = []syscall.Signal{syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}

// signals are what this process gets while it waits for a lock and while its job runs.
type signals struct {
	// ch is filled by the runtime, which drops what does not fit: enough for every signal to be pending a few times.
	ch chan os.Signal
	// off are the signals that were ignored when the first job was started, so whoever started us has switched them
	// off.
	off     signalSet
	started bool // a job was
}

// signalSet has a bit for each signal.
type signalSet uint64

func (s signalSet) has(sig syscall.Signal) bool { return s&(1<<(sig-1)) != 0 }

// catchSignals begins to catch the deadly ones.
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

func (s *signals) stop() { signal.Stop(s.ch) }

// beforeJob makes a second job find all signals as the first one did. One that we ignore is ignored in a job too; one
// that we catch has its default effect there, and Go's runtime goes on catching one that nobody wants any more.
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

// jobStarted begins to catch what matters to a job that runs, and ignores SIGTTOU: it would stop us when we change the
// foreground while we are in the background.
func (s *signals) jobStarted() {
	for _, sig := range forJobs {
		if !s.off.has(sig) {
			signal.Notify(s.ch, sig)
		}
	}
	signal.Ignore(syscall.SIGTTOU)
}

// endWait returns a context that a deadly signal cancels with a *signalError. done stops listening; after it the
// signals are the caller's to read from ch. A second signal during what the first one caused has its default effect.
// Those that are caught since an earlier job do here what they do before the first one.
func (s *signals) endWait(parent context.Context) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	quit, quitted := make(chan struct{}), make(chan struct{})
	// Ends by done, which waits for it: nothing of a signal may be taken by this goroutine that the job should get.
	go func() {
		defer close(quitted)
		for {
			select {
			case sig := <-s.ch:
				switch sig {
				case syscall.SIGTSTP:
					stopOurselves()
				case syscall.SIGCONT, syscall.SIGWINCH:
				default:
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

// stopOurselves stops our process group, as SIGTSTP would, and returns when it has been continued. In the session
// leader's group it does nothing: no shell with job control put us there, so nobody would continue us (the kernel
// refuses SIGTSTP for the same reason). It sends SIGSTOP because Go's runtime does not give a signal that was once
// caught its default effect back.
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
