module github.com/interlock-go/interlock/internal/docsite

go 1.26

replace github.com/interlock-go/interlock => ../../

replace github.com/interlock-go/interlock/internal/browser => ../browser

require (
	github.com/chromedp/chromedp v0.23.0
	github.com/interlock-go/interlock v0.0.0
	github.com/interlock-go/interlock/internal/browser v0.0.0
	github.com/yuin/goldmark v1.8.7
)

require (
	github.com/chromedp/cdproto v0.159.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260623181947-01eb4420fa68 // indirect
)
