package redislock

// The scripts. Each is made of parts: quick answers first, so that what is not needed is not even set up.
var (
	acquireScript = newScript("clock", "acquire_fast", "text", "lock", "rules", "open", "acquire")
	releaseScript = newScript("release_fast", "clock", "begin", "text", "lock", "rules", "open", "end", "release")
	requeueScript = newScript("clock", "begin", "text", "lock", "rules", "open", "end", "requeue", "acquire")
	breakScript   = newScript("clock", "begin", "text", "lock", "rules", "open", "end", "break")
	confirmScript = newScript("clock", "begin", "text", "lock", "rules", "open", "end", "confirm")
	renewScript   = newScript("renew")
	lookScript    = newScript("clock", "text", "look")
)
