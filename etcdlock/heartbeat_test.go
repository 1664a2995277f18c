package etcdlock

import (
	"context"
	"errors"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// terms is a cluster whose members know of different leaders: in one term signs of life are answered, in the other
// reads.
type terms struct {
	pb.KVClient
	pb.LeaseClient
	renews, reads uint64
	streams       int // of signs of life, that were opened
}

func (c *terms) Range(context.Context, *pb.RangeRequest, ...grpc.CallOption) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{RaftTerm: c.reads}}, nil
}

func (c *terms) LeaseKeepAlive(context.Context, ...grpc.CallOption) (pb.Lease_LeaseKeepAliveClient, error) {
	c.streams++
	return &termsStream{cluster: c}, nil
}

type termsStream struct {
	pb.Lease_LeaseKeepAliveClient
	cluster *terms
}

func (s *termsStream) Send(*pb.LeaseKeepAliveRequest) error { return nil }

func (s *termsStream) Recv() (*pb.LeaseKeepAliveResponse, error) {
	return &pb.LeaseKeepAliveResponse{Header: &pb.ResponseHeader{RaftTerm: s.cluster.renews}, TTL: 1}, nil
}

// A sign of life that a leader has answered counts only if no majority follows a later one.
func TestPacemaker_AnAnswerOfAnEarlierTerm_DoesNotCount(t *testing.T) {
	t.Parallel()
	c := new(terms)
	d := &Driver{client: clientv3.NewCtxClient(t.Context()), leases: c, names: names{defaultPrefix}, life: t.Context()}
	d.opts.RequestTimeout = time.Minute
	d.client.KV = clientv3.NewKVFromKVClient(c, d.client)
	p := &pacemaker{s: &session{d: d, id: 1, timeout: time.Minute}}
	for _, of := range []struct {
		renews, reads uint64
		want          error
		streams       int // after it
	}{
		{renews: 2, reads: 2, streams: 1},
		{renews: 2, reads: 3, want: errDeposed, streams: 1},
		{renews: 3, reads: 3, streams: 2}, // another member is asked
		{renews: 4, reads: 3, streams: 2}, // the member that was read from will hear of it
	} {
		c.renews, c.reads = of.renews, of.reads
		_, err := p.beat(t.Context(), time.Minute)
		if !errors.Is(err, of.want) {
			t.Errorf("an answer in term %d, a read in term %d: %v, want %v", of.renews, of.reads, err, of.want)
		}
		if c.streams != of.streams {
			t.Errorf("after term %d and %d there were %d streams, want %d", of.renews, of.reads, c.streams, of.streams)
		}
	}
}
