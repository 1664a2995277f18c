// Package redlock is the engine for locks that a majority of independent Redis servers keeps.
package redlock
