package browsertest

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/webguard"
)

// login waits for the form. A browser shows its field for some time before it has the focus, and keys of that time are
// lost.
func (p *tab) login() {
	p.Helper()
	p.Until("the login", "document.activeElement?.id === 'token'")
}

func TestLogin_LetsInWhoKnowsTheTokenAndComesBackWhenItIsAskedForAgain(t *testing.T) {
	const secret = "a-token-of-the-operators"
	s := newSite(t, console.Options{Tokens: []webguard.Token{{Name: "ops", Secret: secret}}})
	hold(t.Context(), t, s.newClient("shop-1"), "order:42", "")
	p := newTab(t)
	p.Bear(`ERR_|401 \(Unauthorized\)`)
	p.Must(chromedp.Do(p.Ctx, chromedp.Navigate(s.url(""))))
	p.login()
	p.Press(secret + "\r")
	p.Shows("td.c-name", "order:42")
	// Who logs out is asked for the token again.
	p.Click("#logout button")
	p.login()
	p.Must(chromedp.Do(p.Ctx, chromedp.Navigate(s.url(""))))
	p.login()
	p.Press(secret + "\r")
	p.Shows("td.c-name", "order:42")
	// A console that was started again knows no sessions: the page that is open goes to the login by itself.
	s.stop()
	s.start()
	p.login()
	where, err := url.Parse(eval[string](p, "location.href"))
	if err != nil || where.Path != "/login" {
		t.Errorf("the login is at %v, %v", where, err)
	}
}

// Over HTTP and under a name a browser says less about where a form comes from than on loopback or over TLS.
func TestLogin_OverHTTPUnderAName_LetsInAndOut(t *testing.T) {
	const name, secret = "console.example", "a-token-of-the-operators"
	s := newSite(t, console.Options{Tokens: []webguard.Token{{Name: "ops", Secret: secret}}, Hosts: []string{name}})
	hold(t.Context(), t, s.newClient("shop-1"), "order:42", "")
	p := newTab(t)
	p.Bear(`401 \(Unauthorized\)|Cross-Origin-Opener-Policy`)
	p.Must(chromedp.Do(p.Ctx, chromedp.Navigate(strings.Replace(s.url(""), "127.0.0.1", name, 1))))
	p.login()
	p.Press(secret + "\r")
	p.Shows("td.c-name", "order:42")
	p.Click("#logout button")
	p.login()
}
