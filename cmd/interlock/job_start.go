// The start of a job. The order matters: the streams, the lock's file, the terminal, the signals, the process.

package main

import (
	"fmt"
	"io"
	"os"
)

// start starts the command. beforeJob comes before the start and jobStarted after it, because the command inherits
// which signals are ignored. The terminal is given to the command as part of the start, so that it never runs in the
// background for a moment.
func (j *job) start(stdin io.Reader, stdout, stderr io.Writer) error {
	streams, err := filesOf(stdin, stdout, stderr)
	if err != nil {
		return err
	}
	var lent *os.File
	// With it the lock is the command's too: if this process alone is killed, as by the kernel when memory runs out,
	// the lock stays held until the command has ended. On Linux the kernel then kills the command, and what the command
	// has started keeps the lock until it has ended too.
	if j.lends != nil {
		if lent, err = j.lends(); err != nil {
			return fmt.Errorf("the lock's file cannot be handed to the command: %w", err)
		}
		defer lent.Close() // the command has its own by then, and a copy here would keep the lock after it
	}
	j.tty = openTerminal()
	foreground := j.tty
	if !j.tty.interactive(stdin, stdout) {
		foreground = nil
	}
	j.signals.beforeJob()
	j.child, err = startChild(j.path, j.argv, j.env, streams, lent, foreground)
	if err != nil {
		j.tty.close()
		return commandError(j.path, err)
	}
	j.signals.jobStarted()
	return nil
}

// filesOf makes files of the streams, which they are except in tests. exec.Cmd would put a pipe and a goroutine between
// others and the command; then the command's stdout would be no terminal, and what it writes last could be lost when
// this process is killed.
func filesOf(stdin io.Reader, stdout, stderr io.Writer) (files [3]*os.File, err error) {
	for i, stream := range []any{stdin, stdout, stderr} {
		f, ok := stream.(*os.File)
		if !ok {
			return files, fmt.Errorf("stream %d is not a file that a command could inherit", i)
		}
		files[i] = f
	}
	return files, nil
}
