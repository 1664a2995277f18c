package etcdlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// hanging is a server whose first stream stops reading with some message. It answers all watches before that.
type hanging struct {
	stops  func(*pb.WatchRequest) bool
	opened chan *stream // buffer of some
}

func (h *hanging) Watch(ctx context.Context, _ ...grpc.CallOption) (pb.Watch_WatchClient, error) {
	s := &stream{ctx: ctx, stops: h.stops, answers: make(chan *pb.WatchResponse, 10)}
	h.stops = func(*pb.WatchRequest) bool { return false }
	h.opened <- s
	return s, nil
}

// stream is one stream of it, as the client sees it.
type stream struct {
	grpc.ClientStream
	ctx     context.Context //nolint:containedctx // as in grpc
	stops   func(*pb.WatchRequest) bool
	answers chan *pb.WatchResponse
}

// Send blocks, as that of grpc does, while the server does not read and the stream goes on.
func (s *stream) Send(r *pb.WatchRequest) error {
	if s.stops(r) {
		<-s.ctx.Done()
		return s.ctx.Err()
	}
	answer := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 1}}
	if create := r.GetCreateRequest(); create != nil {
		answer.Created, answer.WatchId = true, create.WatchId
	}
	s.answers <- answer
	return nil
}

func (s *stream) Recv() (*pb.WatchResponse, error) {
	select {
	case r := <-s.answers:
		return r, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// While a member that hangs blocks a message, nobody asks it for a sign of life.
func TestListener_WhoseMessageIsNotRead_OpensAnotherStreamInTime(t *testing.T) {
	for name, stops := range map[string]func(*pb.WatchRequest) bool{
		"a watch":        func(r *pb.WatchRequest) bool { return r.GetCreateRequest().GetWatchId() == 2 },
		"a sign of life": func(r *pb.WatchRequest) bool { return r.GetProgressRequest() != nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			h := &hanging{stops: stops, opened: make(chan *stream, 10)}
			e := newListener(h, time.Second)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go e.run(ctx) // ends with ctx
			<-h.opened
			e.watch(&queueView{watch: "one"})
			w := e.watch(&queueView{watch: "two"})
			begun := time.Now()
			select {
			case <-h.opened:
			case <-time.After(time.Hour):
				t.Fatalf("%s that is not read keeps the stream for ever", name)
			}
			if took, most := time.Since(begun), (silences+1)*e.pulse+longestPause; took > most {
				t.Errorf("%s that is not read keeps the stream for %v, want at most %v", name, took, most)
			}
			synctest.Wait()
			if created, _, err := e.news(w); created == 0 || err != nil {
				t.Errorf("%s that was not read: the next stream does not watch: %v", name, err)
			}
		})
	}
}
