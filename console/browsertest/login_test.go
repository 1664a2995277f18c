package browsertest

import (
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/interlock-go/interlock/console"
)

func TestLogin_LetsInWhoKnowsTheTokenAndComesBackWhenItIsAskedForAgain(t *testing.T) {
	const secret = "a-token-of-the-operators"
	s := newSite(t, console.Options{Tokens: []console.Token{{Name: "ops", Secret: secret}}})
	hold(t.Context(), t, s.newClient("shop-1"), "order:42", "")
	p := newTab(t)
	p.bear(`ERR_|401 \(Unauthorized\)`)
	p.must(chromedp.Do(p.ctx, chromedp.Navigate(s.url(""))))
	p.until("the login", "document.querySelector('#token')")
	p.press(secret + "\r")
	p.shows("td.c-name", "order:42")
	// Who logs out is asked for the token again.
	p.click("#logout button")
	p.until("the login", "document.querySelector('#token')")
	p.must(chromedp.Do(p.ctx, chromedp.Navigate(s.url(""))))
	p.until("the login", "document.querySelector('#token')")
	p.press(secret + "\r")
	p.shows("td.c-name", "order:42")
	// A console that was started again knows no sessions: the page that is open goes to the login by itself.
	s.stop()
	s.start()
	p.until("the login", "document.querySelector('#token')")
	where, err := url.Parse(eval[string](p, "location.href"))
	if err != nil || where.Path != "/login" {
		t.Errorf("the login is at %v, %v", where, err)
	}
}
