package main

// The engines of this command. Each registers its URL schemes.
import (
	_ "github.com/interlock-go/interlock/etcdlock"
	_ "github.com/interlock-go/interlock/filelock"
	_ "github.com/interlock-go/interlock/memlock"
	_ "github.com/interlock-go/interlock/mysqllock"
	_ "github.com/interlock-go/interlock/pglock"
	_ "github.com/interlock-go/interlock/redislock"
	_ "github.com/interlock-go/interlock/redislock/redlock"
	_ "github.com/interlock-go/interlock/zklock"
)
