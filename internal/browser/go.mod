module github.com/interlock-go/interlock/internal/browser

go 1.26

replace github.com/interlock-go/interlock => ../../

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/interlock-go/interlock v0.0.0
)

require github.com/go-json-experiment/json v0.0.0-20260623181947-01eb4420fa68 // indirect
