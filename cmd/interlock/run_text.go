// The help of interlock run. run.go shows it; run_flags.go has the line of each flag, and topics.go the exit codes.

package main

// It is wrapped by hand at 96 columns. man.go makes paragraphs of it, and the golden file of the help shows each
// change. The lines above the flags say what no flag can: what happens to the command, and when.
const runLong = `Run a command while holding the lock NAME, and exit with the command's exit code.

run waits for the lock for at most --wait, or for ever without it. A duration is written as
500ms or 1m30s; a plain number means seconds.

The command uses the stdin, stdout and stderr of interlock directly, and runs in its own process
group. interlock forwards the signals that it gets (INT, TERM, HUP, QUIT, USR1, USR2, WINCH,
TSTP, CONT) to the whole group. After INT or TERM the group has --kill-grace to end. Then, or at
a second INT or TERM, it is killed. A lock in files cannot expire, so on files the command has
no time limit unless --kill-grace is given. What it leaves in its group is killed after 5 s.

interlock releases the lock when the command has ended. First it kills what the command left in
its process group; a daemon that should live on must start its own session (setsid).

With --min-hold a command that ends early keeps the lock unavailable for the rest of that time.
On Redis the server does that, and run ends at once. On other engines a lock ends with its
process, so run stays until the time is over, or until INT or TERM.

If the lock cannot be kept, the group gets TERM early enough to have --kill-grace. It is killed
before another owner can get the lock, and the exit code is 79. This needs 2 x renewal +
kill-grace + drift + margin <= lease, or run refuses to start. A lock in files cannot be lost,
so none of this applies there.

If only interlock itself is killed (kill -9, no memory), a command on files goes on, and the lock
stays held until the command and all that inherited the lock have ended. On other engines, and
with --close, the command's process group is killed at once, before another owner can get in.
If interlock is only stopped (kill -STOP), the group is killed before the lock runs out (Linux).
Nobody is left to do so if interlock and the process interlock-keeper are killed together, and
nothing reaches a process that has left the group (setsid).

With --shared the command holds the read lock of the read/write lock NAME, beside other readers;
with --exclusive it holds the write lock, alone. A waiting writer keeps new readers out. Without
either flag the lock is a mutex. It is independent of the read/write lock of the same name, so a
command that must keep readers out needs --exclusive.

With --fd there is no command. run takes the lock on a descriptor that the calling shell has
open on the lock's file, and ends. The shell holds the lock until it closes the descriptor
(exec 9>&-) or ends, together with all that inherited it.`

// Each line meets a lock that is held in another way: wait, skip, wait for a while, share it, let the shell hold it.
// testdata/script tests each.
const runExample = `  interlock run nightly -- ./backup.sh --full
  interlock run nightly --no-wait -E 0 -- ./backup.sh     # in cron: skip quietly if it still runs
  interlock run deploy --wait 5m -c 'make build && make push'
  interlock run data --shared -- ./report.sh              # many of these, or one "run data --exclusive"
  exec 9<>~/.local/state/interlock/locks/nightly.mutex && interlock run nightly --fd 9   # the shell itself holds it`
