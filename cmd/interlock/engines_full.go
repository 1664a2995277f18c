//go:build full

package main

// The engines that need a server, and bring a client for it, and the server of the web page. They are most of what
// there is to compile, and of the time that the command takes to start, so only a build with the tag full has them
// (docs/rationale.md, Light and full and The console).
import (
	_ "github.com/interlock-go/interlock/cmd/interlock/internal/webpage/serve"
	_ "github.com/interlock-go/interlock/etcdlock"
	_ "github.com/interlock-go/interlock/mysqllock"
	_ "github.com/interlock-go/interlock/pglock"
	_ "github.com/interlock-go/interlock/redislock"
	_ "github.com/interlock-go/interlock/redislock/redlock"
	_ "github.com/interlock-go/interlock/zklock"
)
