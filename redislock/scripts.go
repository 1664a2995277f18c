// The list of the scripts; wire.md has the same table, and a test compares both.

package redislock

import (
	"embed"
	"strings"

	"github.com/interlock-go/interlock/redislock/conn"
)

// Each script is made of parts. The quick answers come first, so that what they do not need is not even set up.
var (
	acquireScript = newScript("clock begin acquire_fast text lock crowd presence cond rules open acquire")
	releaseScript = newScript(
		"begin release_thin clock release_fast text lock crowd presence cond rules open end release",
	)
	requeueScript = newScript(
		"clock begin requeue_give release_fast requeue_fast text lock crowd presence cond rules open end requeue " +
			"acquire",
	)
	breakScript   = newScript("clock begin text lock crowd presence cond rules open end break")
	confirmScript = newScript("clock begin text lock crowd presence cond rules open end confirm")
	adoptScript   = newScript("clock begin text lock crowd presence cond rules open end adopt")
	resizeScript  = newScript("clock begin text lock crowd presence cond rules open resize")
	multiScript   = newScript("clock text multi")
	renewScript   = newScript("renew")
	lookScript    = newScript("clock text look")
	watchScript   = newScript("clock watch")
	aliveScript   = newScript("clock alive")

	condWaitScript   = newScript("clock begin text lock crowd presence cond rules open end cond_wait acquire")
	condSignalScript = newScript("clock begin text lock crowd presence cond rules open end cond_signal")

	latchSetScript   = newScript("clock latch_set")
	latchDownScript  = newScript("clock tell latch_down")
	latchCountScript = newScript("latch_count")

	// These write even if they find nothing to do, for a client that waits for replicas.
	touchedReleaseScript = newScript(
		"touch begin release_thin clock release_fast text lock crowd presence cond rules open end release",
	)
	touchedBreakScript      = newScript("touch clock begin text lock crowd presence cond rules open end break")
	touchedLookScript       = newScript("touch clock text look")
	touchedLatchCountScript = newScript("touch latch_count")

	// bundleScript has acquire and release in it, as functions.
	bundleScript = newScript(
		"clock bundle_acquire acquire_fast text lock crowd presence cond rules open acquire bundle_release " +
			"release_thin release_fast text lock crowd presence cond rules open end release bundle",
	)

	// These are for locks that may be watched, which are those of elections. A separate script spares all other locks
	// the look at the watchers.
	watchedAcquireScript = newScript(
		"clock tell watched begin acquire_fast text lock crowd presence cond rules open acquire watched_end",
	)
	watchedReleaseScript = newScript(
		"clock tell watched begin release_thin release_fast text lock crowd presence cond rules open end release " +
			"watched_end",
	)
	watchedRequeueScript = newScript(
		"clock tell watched begin requeue_give release_fast requeue_fast text lock crowd presence cond rules open " +
			"end requeue acquire watched_end",
	)
	watchedBreakScript = newScript(
		"clock tell watched begin text lock crowd presence cond rules open end break watched_end",
	)
	touchedWatchedReleaseScript = newScript(
		"touch clock tell watched begin release_thin release_fast text lock crowd presence cond rules open end " +
			"release watched_end",
	)
	touchedWatchedBreakScript = newScript(
		"touch clock tell watched begin text lock crowd presence cond rules open end break watched_end",
	)
	watchedAdoptScript = newScript(
		"clock tell watched begin text lock crowd presence cond rules open end adopt watched_end",
	)
)

// bundle says which requests of several goroutines may share a run (docs/rationale.md, Bundles): plain acquires and
// plain releases, by their script and by how many keys and arguments they have.
var bundle = &conn.Bundle{Script: bundleScript, Members: []conn.Member{
	{Letter: 'a', Script: acquireScript, Keys: 3, Args: 4},
	{Letter: 'r', Script: releaseScript, Keys: 3, Args: 1},
}}

// How the Lua files become scripts. conn.Script sends them.

//go:embed scripts/*.lua
var scriptFiles embed.FS

// newScript returns a script made of the files with these names. They are joined at the first run: a program that never
// uses some kind of lock does not pay for its text.
func newScript(names string) *Script {
	return conn.NewLateScript(func() string { return join(strings.Fields(names)) })
}

// join makes one script of the named files. Lua on a server has no modules.
func join(names []string) string {
	var source strings.Builder
	for _, name := range names {
		text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err) // the files are part of the program
		}
		source.Write(text)
	}
	return source.String()
}
