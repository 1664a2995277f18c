// The files that flags name: certificate, tokens, audit. They are read before the engine is opened.

package serve

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/interlock-go/interlock/cmd/interlock/internal/webpage"
	"github.com/interlock-go/interlock/webguard"
)

// flagError is the error of a wrong flag, which the command tells like every other wrong use.
func flagError(form string, args ...any) error { return webpage.FlagError(fmt.Sprintf(form, args...)) }

// readCertificate reads certificate and key once: new ones need another start. Without the flags it returns none.
func readCertificate(o *webpage.Server) ([]tls.Certificate, error) {
	if (o.TLSCert == "") != (o.TLSKey == "") {
		return nil, flagError("--tls-cert and --tls-key belong together")
	}
	if !o.TLS() {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
	if err != nil {
		return nil, flagError("--tls-cert, --tls-key: %v", err)
	}
	return []tls.Certificate{certificate}, nil
}

// readTokens reads the file of tokens. Without one, only this machine may be able to reach the address; that is known
// when it listens, because a name in --listen may mean any address.
func readTokens(o *webpage.Server, listens net.Addr) ([]webguard.Token, error) {
	if o.TokenFile == "" {
		if !webpage.Loopback(listens) {
			return nil, flagError("--listen %s: other machines reach this address, so --token-file is needed", o.Listen)
		}
		return nil, nil
	}
	tokens, err := webguard.ReadTokens(o.TokenFile)
	if err != nil {
		return nil, flagError("--token-file: %v", err)
	}
	return tokens, nil
}

// stays is a writer that Close leaves open.
type stays struct{ io.Writer }

// Close does nothing.
func (stays) Close() error { return nil }

// openAudit opens what gets a line for each attempt to end a hold: a file that is appended to and that only its owner
// may read, or stderr.
func openAudit(o *webpage.Options) (io.WriteCloser, error) {
	if o.AuditFile == "" {
		return stays{o.Stderr}, nil
	}
	file, err := os.OpenFile(o.AuditFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, flagError("--audit-file: %v", err)
	}
	return file, nil
}
