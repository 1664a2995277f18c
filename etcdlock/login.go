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
// its token. Use it for clients that are given to [New]: clientv3.New(etcdlock.KeepLoggedIn(config)). Those that are
// opened by URL have it.
//
// The client library alone does not: it shows the refused token also when it logs in. Servers before etcd 3.5 refuse
// that, so the library tries again until the request's time is over, and a client whose token has been forgotten (after
// a restart of all servers, or after --auth-token-ttl without a request) is of no use any more.
//
// Username and Password of the returned config are empty: two grpc interceptors behind those of config.DialOptions have
// them. The client logs in with its first request. A login is one request, and the servers' check of the password takes
// some 0.1 s. Of requests that need one at the same time one logs in. Without a user and password, config is returned
// as it is.
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
	config.DialOptions = append(slices.Clip(config.DialOptions),
		grpc.WithChainUnaryInterceptor(l.unary), grpc.WithChainStreamInterceptor(l.stream))
	return config
}

const (
	// firstLogin is how long a member among several has to answer a login, and twice as long after one that did not;
	// longestLogin is the most. The next one is asked of another member.
	firstLogin, longestLogin = time.Second, 5 * time.Second

	// logins is how often a request is sent at most: with a token that is refused, with the next, which may be one that
	// another request was given just before the servers forgot it, and with one of its own.
	logins = 3
)

// authenticate is the method of a request for a token.
const authenticate = "/etcdserverpb.Auth/Authenticate"

// token is what the servers gave for a password: the empty one if they have no users.
type token struct{ text string }

// login has the token of one client. The token is never shown in order to get another.
type login struct {
	user, password string
	first          time.Duration
	turn           chan struct{} // has one place, taken by who logs in, who alone uses limit
	limit          time.Duration

	mu      sync.Mutex // guards what follows; nothing blocks under it
	current *token     // nil if there is none that is worth showing
}

// shown is ctx for a request that shows t.
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

// distrust takes in that the servers have refused t. Others may have a newer one already.
func (l *login) distrust(t *token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == t {
		l.current = nil
	}
}

// token returns the token, and logs in if there is none. Of many that need one at the same time one asks.
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
	case once.Err() != nil && ctx.Err() == nil:
		l.limit = min(2*l.limit, longestLogin)
	}
	return nil, err
}

// refusesToken reports that a server does not know the token of a request, or wants one.
func refusesToken(err error) bool {
	said := rpctypes.Error(err)
	return errors.Is(said, rpctypes.ErrInvalidAuthToken) || errors.Is(said, rpctypes.ErrAuthOldRevision) ||
		errors.Is(said, rpctypes.ErrUserEmpty)
}

// unary is a grpc.UnaryClientInterceptor. A request whose token is refused was not carried out.
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
			markUnsent(ctx, err) // there is no token to show
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

// stream is a grpc.StreamClientInterceptor. Who has opened a stream that ends because of its token opens another.
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

// loggedIn is a stream that showed a token when it was opened, which counts for all that is asked on it.
type loggedIn struct {
	grpc.ClientStream
	login *login
	token *token
}

// RecvMsg notices when the token is refused. Of a watch the servers then say only that it is not permitted.
func (s *loggedIn) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if watched, is := m.(*pb.WatchResponse); refusesToken(err) || err == nil && is && refusesWatch(watched) {
		s.login.distrust(s.token)
	}
	return err
}
