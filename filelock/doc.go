// Package filelock is the engine for one machine. A lock is flock(2) on a file (LockFileEx on Windows), so there is no
// server, and the kernel frees it the instant its process dies. It is the command's default.
//
//	locks, err := interlock.Open(ctx, "file:///var/lib/app/locks", nil)
//
// # URL
//
// file:///folder names a folder by its absolute path, with three slashes. There is no host and no user. readonly=true
// is for those who only look ([Options]). Missing folders on the way are created with mode 0700. A lock file takes the
// folder's own permission bits (without the x). So several users can share locks through a folder that an operator made
// for them, for instance with mode 2770. Everybody who locks must be able to write.
//
// Each lock is one file: its name percent-encoded (a to z, 0 to 9, dot, dash and underscore stand for themselves) and
// ".mutex", ".rw", ".sem" or ".election". So flock(1) takes part, in both directions:
//
//	flock /var/lib/app/locks/nightly.mutex ./backup.sh
//
// On the file of a read/write lock "flock -s" reads and "flock" writes, but without a place in the line. It may get
// ahead of a writer that waits. On the file of a semaphore flock(1) keeps out everybody who comes later; it takes no
// permits.
//
// A name whose encoding is too long for a file name is cut, and completed by its SHA-256. The whole name is in the
// file's record.
//
// # Guarantees
//
// Exclusion is the kernel's: between processes, between drivers of one process and between goroutines. It needs no
// lease, no clock and no renewal, and a hold cannot be lost while its process lives. (Go's race detector knows nothing
// of flock: memory that goroutines share needs one driver for all of them, which it does see.)
//
// A hold ends with its process, also by kill -9, at once. [Driver.File] hands the hold to a child as well, and then it
// ends with the last of the two. A regular Release ends it whoever has the descriptor. [Driver.AcquireOn] takes a lock
// on an open file of the caller's, such as a shell's, to which the hold then belongs.
//
// The token is written into the lock file before Acquire returns. It is the larger of the last token plus one and the
// wall clock in microseconds. There is no fsync. A power cut can take away the last records. But tokens are at most 4
// milliseconds ahead of the clock, so the clock has passed all of them before the machine is up again. So tokens go
// back only if two things meet: the record is lost (file removed, damaged, power cut) and the clock was set back. A
// damaged or foreign record is logged.
//
// Waiting happens in the kernel, without polling, on Linux (amd64 and arm64); see below. Waiters stand in a line, and a
// Try fails while somebody waits. A process that releases and asks again within 0.1 milliseconds may go before the
// waiters until it has had its turn, a millisecond in all. Then it comes behind them. So everybody gets a turn, and a
// short critical section does not cost a process switch each time. With several processes at one lock that is still
// slower than bare flock, which lets whoever runs go first. The ratios, and how equal the shares are, are in
// docs/evidence/bench/files.md.
//
// If others wait, a process that came back at once the last time keeps the flock for up to 0.1 milliseconds after a
// release in its turn: the lock lingers. So no waiter gets in between. The next hold takes it over with a token and
// record of its own. If none comes, a timer frees it. Nothing lingers when nobody waits, when the turn is over, after
// [Driver.File] or after Close, and the kernel ends it with the process.
//
// An uncontended Acquire and Release together cost about twice a bare open, flock, unlock, close (bench/README.md).
//
// # Readers, writers, permits
//
// Linux has read/write locks and semaphores too. A writer has the flock exclusively, readers share it. Permits are
// marks of the open file (OFD locks), as long as the permits that they stand for. The limit is such a mark as well. So
// readers, permits and the limit end with their process, also by kill -9, at once, and no record has to be right for
// that.
//
// Everybody comes in through one gate, alone. The first in the line keeps the gate while it waits for those inside. So
// readers who keep coming do not starve a writer, and small requests do not starve a big one. Nobody holds a part of
// the permits while it waits for the rest, so requests for several do not wait for each other. The gate ends with its
// process too. A process that is stopped (SIGSTOP) in the microseconds in which it goes through keeps the gate closed.
//
// The first in the line of a semaphore polls every 1 to 25 milliseconds. The kernel can wait for one mark, but not for
// enough of many. All others sleep in the kernel. A grant of permits looks at all holders, with two system calls for
// each: some 20 milliseconds beside a thousand. A Try that meets somebody on the way in waits for up to 10 milliseconds
// before it is refused.
//
// # What it cannot do
//
//   - Names of holders that are not of this package, such as flock(1), are found in /proc/locks (Linux). Reading it
//     halts everybody's file locks, so a driver does it at most once a second. So a try may name the holder of a second
//     ago, or nobody. A wait behind such a holder looks again now and then; that has no part in getting the lock.
//   - Machines. flock works between the processes of one machine; on network file systems it depends on the server and
//     on mount options. Diagnose warns about them.
//   - Upgrades and downgrades: flock gives a lock up while it changes its mode, so another could get in between.
//   - Read/write locks and semaphores outside Linux, and on file systems and in sandboxes without OFD locks.
//   - Named owners. The kernel knows descriptors, not owners.
//   - Order. The line is only nearly first come, first served. The kernel wakes waiters in the order in which they
//     came. But a running process can get ahead of one that is waking up, and a signal sends a waiter to the end.
//   - Expiry. A process that is stopped (SIGSTOP, a debugger, a paused container) keeps its lock, and its place at the
//     head of the line too. It also keeps a lock that it has released, if it is stopped while the lock lingers. The
//     timer that ends the lingering is Go's: in a process that keeps all its processors busy it may come 10 or 20
//     milliseconds late.
//   - The holder of a lock that lingers in another process is shown as the one whose hold has just ended. A waiter that
//     has given up may still make a Try fail for 0.15 milliseconds.
//   - Breaking. The kernel cannot take a lock from a process; kill the process.
//   - Waiters are not listed: the kernel knows that somebody waits, not who.
//   - MinHold beyond the life of the process: the client keeps the hold in the background, and the kernel ends it.
//   - LockDelay: after the end of a process nothing is left that could keep others out.
//   - Outside Linux waiters poll (every 1 to 25 ms) and form no line, a Try does not see them, and holders are not
//     listed.
//
// Lock files are never removed. A file that is unlinked while somebody waits for it, or has just opened it, is a lock
// that others no longer see. This package notices that before it grants (it compares the file with the one at the path
// and starts again), but flock(1) does not. A lock that lingers is taken over without that comparison if the last one
// was made less than 0.05 milliseconds ago. To clean up, remove each file under its own lock, which nobody can have
// meanwhile. Without the flock, a file that is in use loses its exclusion:
//
//	cd /var/lib/app/locks && for f in *.mutex *.rw *.sem *.election; do [ -f "$f" ] && flock -n "$f" rm "$f"; done
//
// # Signals
//
// A thread that sleeps in flock leaves it when the lock is free or a signal arrives. To end a wait with its context,
// the driver sends a signal to the waiting thread, and to no other. Go handles all signals so that system calls are
// restarted (SA_RESTART). For one realtime signal the driver takes this flag away, at the first wait. It is number 62,
// or the next lower one that has Go's own handler. The handler stays Go's and ignores the signal, no other signal
// changes, and the flag stays off. A program that subscribes to all signals (signal.Notify without a list) sees this
// one when a wait is cancelled and must not forward it. If no such signal is left, or more than 512 waits run at once,
// waits poll as on other systems. Three other ways were refused. Polling wakes for nothing and comes late. A thread
// left behind until the lock is free would then take the lock for nobody. With a helper process a wait would cost a
// fork.
//
// # Servers
//
// None. A local file system with flock is needed: ext4, xfs, btrfs, tmpfs and overlayfs are. On systems that have
// neither flock nor LockFileEx, New returns an error matching driver.ErrUnsupported.
//
// # Windows
//
// Windows has mutexes and elections, by LockFileEx on a byte far behind the record. It compiles in CI; the conformance
// suite was run under Wine, not under Windows itself. The URL names a drive: file:///C:/locks. What differs:
//
//   - Waits poll (every 1 to 25 ms), in no line, and holders are not listed, as on all systems but Linux.
//   - After the end of a process Windows frees its locks when it comes to it, mostly at once.
//   - [Driver.File] returns an error matching driver.ErrUnsupported: a child that inherits a handle has no lock by it
//     once its parent has ended. A job that must not outlive the lock belongs into a job object that is closed with the
//     process. Signals to process groups do not exist. The command does not run on Windows.
//   - Nobody can remove, rename or replace a lock file while a driver has it open. A driver keeps the 16 that it used
//     last open until Close. So there is nothing to compare, and a folder is cleaned up when nobody uses it.
//   - Rights are those that the folder passes on; permission bits mean nothing.
package filelock
