package serve

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/serve/oip"
)

// messageHead is room for what a message of the largest bag holds beside it.
const messageHead = 64 << 10

// newGRPC is the service of the protocol and that of grpc.health.v1, which probes ask.
// Streams end with the context.
func (s *Server) newGRPC(ending context.Context) (*grpc.Server, *health.Server) {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(int(s.o.Bytes) + messageHead),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.ConnectionTimeout(s.o.Timeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 5 * time.Minute, Time: time.Minute, Timeout: s.o.Timeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.InTapHandle(s.tap),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			ctx, cancel := context.WithCancel(stream.Context())
			defer cancel()
			defer context.AfterFunc(ending, cancel)()
			return handle(srv, endingStream{stream, ctx})
		}),
	}
	if s.o.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.o.TLS)))
	}
	server, readiness := grpc.NewServer(options...), health.NewServer()
	oip.RegisterGRPCInferenceServiceServer(server, protocol{s})
	grpc_health_v1.RegisterHealthServer(server, readiness)
	readiness.SetServingStatus(oip.GRPCInferenceService_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	return server, readiness
}

// endingStream is a stream that ends with the server: who watches the health of a server
// would otherwise keep it.
type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s endingStream) Context() context.Context { return s.ctx }

// probes are the methods that need no token, besides those of grpc.health.v1.
var probes = []string{
	oip.GRPCInferenceService_ServerLive_FullMethodName, oip.GRPCInferenceService_ServerReady_FullMethodName, oip.GRPCInferenceService_ModelReady_FullMethodName,
}

// tap sees the head of a call, interceptors only its message: who has no token gets none
// into memory, and a call whose message never comes has an end. Watching has none.
func (s *Server) tap(ctx context.Context, head *tap.Info) (context.Context, error) {
	if head.FullMethodName == grpc_health_v1.Health_Watch_FullMethodName {
		return ctx, nil
	}
	limited, cancel := context.WithTimeout(ctx, s.whole())
	context.AfterFunc(ctx, cancel)
	if slices.Contains(probes, head.FullMethodName) || strings.HasPrefix(head.FullMethodName, "/"+grpc_health_v1.Health_ServiceDesc.ServiceName+"/") {
		return limited, nil
	}
	err := s.allowed(strings.Join(head.Header.Get("authorization"), ","))
	if err != nil {
		s.metrics.requests.WithLabelValues("grpc", "any", codes.Unauthenticated.String()).Inc() // names of methods may be made up
	}
	return limited, err
}

// unary is what all calls have in common.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
	c := call{protocol: "grpc", method: info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]}
	body := &held{of: s.memory}
	defer body.release()
	err = s.call(ctx, c, func(ctx context.Context) (err error) {
		if message, ok := req.(proto.Message); ok {
			if err := body.take(int64(proto.Size(message))); err != nil {
				return err
			}
		}
		answer, err = handle(ctx, req)
		return err
	})
	return answer, err
}

// protocol is the service of the Open Inference Protocol over gRPC.
type protocol struct{ s *Server }

func (p protocol) ServerLive(context.Context, *oip.ServerLiveRequest) (*oip.ServerLiveResponse, error) {
	return &oip.ServerLiveResponse{Live: true}, nil
}

func (p protocol) ServerReady(context.Context, *oip.ServerReadyRequest) (*oip.ServerReadyResponse, error) {
	return &oip.ServerReadyResponse{Ready: p.s.ready()}, nil
}

func (p protocol) ModelReady(_ context.Context, req *oip.ModelReadyRequest) (*oip.ModelReadyResponse, error) {
	err := p.s.modelReady(req.Name, req.Version)
	if code := status.Code(err); code == codes.NotFound || code == codes.Unavailable {
		return &oip.ModelReadyResponse{}, nil
	}
	return &oip.ModelReadyResponse{Ready: err == nil}, err
}

func (p protocol) ServerMetadata(context.Context, *oip.ServerMetadataRequest) (*oip.ServerMetadataResponse, error) {
	return &oip.ServerMetadataResponse{Name: serverName, Version: p.s.o.Version, Extensions: extensions}, nil
}

func (p protocol) ModelMetadata(_ context.Context, req *oip.ModelMetadataRequest) (*oip.ModelMetadataResponse, error) {
	return p.s.modelMetadata(req.Name, req.Version)
}

func (p protocol) ModelInfer(ctx context.Context, req *oip.ModelInferRequest) (*oip.ModelInferResponse, error) {
	return p.s.infer(ctx, req)
}
