module github.com/interlock-go/interlock

go 1.25.0
