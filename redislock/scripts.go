package redislock

// The scripts. Each is made of parts: quick answers first, so that what is not needed is not even set up.
var (
	acquireScript = newScript("clock", "acquire_fast", "lock", "rules", "open", "acquire")
	releaseScript = newScript("release_fast", "clock", "begin", "lock", "rules", "open", "end", "release")
	requeueScript = newScript("clock", "begin", "lock", "rules", "open", "end", "requeue", "acquire")
	breakScript   = newScript("clock", "begin", "lock", "rules", "open", "end", "break")
	renewScript   = newScript("renew")
	lookScript    = newScript("clock", "look")
)
