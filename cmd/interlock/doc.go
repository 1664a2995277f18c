// Command interlock runs jobs under a distributed lock, and shows, watches and breaks locks, on a web page too.
//
//	interlock run nightly -- ./backup.sh
//
// waits until the lock "nightly" is free, holds it while the job runs, releases it when the job has ended, and exits
// with the job's exit code. Without --url and INTERLOCK_URL the locks are files in the user's state folder, so that it
// works on one machine with no server at all. With them they are in Redis or Valkey, ZooKeeper, etcd, MySQL or
// MariaDB, or PostgreSQL; "interlock help engines" lists the URLs.
//
// # Two builds
//
//	CGO_ENABLED=0 go install github.com/interlock-go/interlock/cmd/interlock@latest
//	go install -tags full github.com/interlock-go/interlock/cmd/interlock@latest
//
// The first is light: it has the engines that need no server, files and memory; it compiles in a third of the time and
// starts in half the time. (CGO_ENABLED=0 is not needed; it makes the start shorter.) The second has every engine, and
// the console. Both are called interlock, and "interlock version" tells which it is. The light one refuses the URL of
// an engine that it does not have, and the console, with exit code 64, and says how to get them.
//
// # Exit codes
//
//	0-63   run and sem: the job's own. Other commands: 0 is success; 1 means "there is no such lock", or that break
//	       was answered no. doctor: 0 ok, 1 warnings, 2 failures
//	64     wrong use: a flag, an argument, a URL, another limit than the one in use, or something that this engine
//	       cannot do
//	69     the engine cannot be reached, does not answer, refuses the login or refuses the request
//	75     another owner holds the lock, and waiting was not wanted or has timed out (-E sets another code)
//	79     the lock was lost while the job ran, and the job was killed for that (--lost-exit-code sets another); renew
//	       and release: the lock is gone
//	125    interlock itself failed, or could not kill all of the job
//	126    the job's command is not executable
//	127    the job's command was not found
//	128+n  signal n ended the job, or the wait for the lock
//
// # Children
//
// The job runs in a process group of its own; see [job] for what happens to it, and when. This needs a Unix: the
// command is not built for Windows.
package main
