package main

// The engines of every build: those that need no server. Each registers its URL schemes. The others are in
// engines_full.go.
import (
	_ "github.com/interlock-go/interlock/filelock"
	_ "github.com/interlock-go/interlock/memlock"
)
