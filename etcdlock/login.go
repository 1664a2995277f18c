// Logging in again when the servers have forgotten a token. url.go uses it for its clients; it is exported for clients
// of users.
//
// The token is state of the client and not of a session: a new token changes no lease, no watch that is open, and no
// hold. A request that is refused for its token was not looked at, so repeating it is no copy of it in the sense of
// call.go.

package etcdlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// KeepLoggedIn returns config for a client that logs in with its user and password again whenever the servers refuse
// its token. Use it for clients that are given to [New]: clientv3.New(etcdlock.KeepLoggedIn(config)). Clients that are
// opened by URL have it.
//
// The client library alone does not do that: it shows the refused token also when it logs in. Servers before etcd 3.5
// refuse that, so the library tries again until the request's time is over. A client whose token was forgotten (after a
// restart of all servers, or after --auth-token-ttl without a request) is then of no use any more.
//
// Username and Password of the returned config are empty: two grpc interceptors behind those of config.DialOptions have
// them. The client logs in with its first request. A login is one request, and the servers' check of the password takes
// some 0.1 s. If several requests need a login at the same time, one of them logs in. Without a user and password,
// config is returned as it is.
func KeepLoggedIn(config clientv3.Config) clientv3.Config {
	if config.Username == "" || config.Password == "" {
		return config
	}
	l := &login{user: config.Username, password: config.Password, turn: make(chan struct{}, 1), limit: longestLogin}
	if len(config.Endpoints) > 1 {
		l.limit = firstLogin
	}
	l.first = l.limit
	config.Username, config.Password = "", ""
	// The library itself gets no user, so it does not log in by its own rules.
	config.DialOptions = append(slices.Clip(config.DialOptions),
		grpc.WithChainUnaryInterceptor(l.unary), grpc.WithChainStreamInterceptor(l.stream))
	return config
}

const (
	// firstLogin is how long one of several members has to answer a login. The limit doubles after one that did not, up
	// to longestLogin; the next login is asked of another member.
	firstLogin, longestLogin = time.Second, 5 * time.Second

	// logins is how often a request is sent at most: with a token that is refused; with the next one, which another
	// request may have got just before the servers forgot it; and with one of its own.
	logins = 3
)

// authenticate is the method of a request for a token.
const authenticate = "/etcdserverpb.Auth/Authenticate"

// token is what the servers gave for a password. It is empty if they have no users.
type token struct{ text string }

// login has the token of one client. The token is never shown in order to get another one.
type login struct {
	user, password string
	first          time.Duration // the first limit
	turn           chan struct{} // buffer of one, taken by the request that logs in; only that uses limit
	limit          time.Duration

	mu      sync.Mutex // guards what follows; nothing blocks under it
	current *token     // nil if there is no token worth showing
}

// shown returns ctx for a request that shows t.
func (t *token) shown(ctx context.Context) context.Context {
	if t.text == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, t.text)
}

// known returns the token, or nil if there is none.
func (l *login) known() *token {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// distrust records that the servers have refused t. Another request may have brought a newer one already, which stays.
// Compared is the pointer: a refusal that arrives late must not throw away the token that replaced it.
func (l *login) distrust(t *token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == t {
		l.current = nil
	}
}

// token returns the token, and logs in if there is none. If many need one at the same time, one asks and the others
// wait.
func (l *login) token(ctx context.Context, cc *grpc.ClientConn) (*token, error) {
	if t := l.known(); t != nil {
		return t, nil
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	// Another has logged in while this one waited for its turn.
	if t := l.known(); t != nil {
		return t, nil
	}
	t, err := l.ask(ctx, cc)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = t
	return t, nil
}

// ask asks for a token.
func (l *login) ask(ctx context.Context, cc *grpc.ClientConn) (*token, error) {
	once, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	answer, err := pb.NewAuthClient(cc).Authenticate(once, &pb.AuthenticateRequest{Name: l.user, Password: l.password})
	switch {
	case err == nil:
		l.limit = l.first
		return &token{answer.Token}, nil
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled):
		return &token{}, nil
	// This member did not answer in time; the caller's time is not over.
	case once.Err() != nil && ctx.Err() == nil:
		l.limit = min(2*l.limit, longestLogin)
	}
	return nil, err
}

// refusesToken reports whether a server does not know the token of a request, or wants one.
func refusesToken(err error) bool {
	said := rpctypes.Error(err)
	return errors.Is(said, rpctypes.ErrInvalidAuthToken) || errors.Is(said, rpctypes.ErrAuthOldRevision) ||
		errors.Is(said, rpctypes.ErrUserEmpty)
}

// unary is a grpc.UnaryClientInterceptor. A request whose token is refused was not carried out, so it may be sent
// again.
func (l *login) unary(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	if method == authenticate {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	for n := 1; ; n++ {
		t, err := l.token(ctx, cc)
		if err != nil {
			markUnsent(ctx, err) // nothing was sent: there is no token to show
			return err
		}
		err = invoke(t.shown(ctx), method, req, reply, cc, opts...)
		if !refusesToken(err) {
			return err
		}
		l.distrust(t)
		if n == logins {
			return err
		}
	}
}

// stream is a grpc.StreamClientInterceptor. If a stream ends because of its token, its user opens another.
func (l *login) stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	t, err := l.token(ctx, cc)
	if err != nil {
		return nil, err
	}
	s, err := open(t.shown(ctx), desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &loggedIn{s, l, t}, nil
}

// loggedIn is a stream that showed a token when it was opened. The token counts for everything that is asked on it.
type loggedIn struct {
	grpc.ClientStream
	login *login
	token *token
}

// RecvMsg notices when the token is refused. About a watch the servers then say only that it is not permitted.
func (s *loggedIn) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if watched, is := m.(*pb.WatchResponse); refusesToken(err) || err == nil && is && refusesWatch(watched) {
		s.login.distrust(s.token)
	}
	return err
}
