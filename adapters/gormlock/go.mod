module github.com/interlock-go/interlock/adapters/gormlock

go 1.25.0

require (
	github.com/interlock-go/interlock v0.0.0
	gorm.io/gorm v1.31.2
)

require (
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	golang.org/x/text v0.21.0 // indirect
)

replace github.com/interlock-go/interlock => ../../
