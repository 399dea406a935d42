// The gRPC service: tokens, limits and health, and all methods of the protocol except inference.

package serve

import (
	"context"
	"path"
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

	"github.com/miplc/miplc/runtime/serve/oip"
)

const (
	// messageHead is the maximum size in bytes of a message without the values of a bag, and of
	// messages that have no values.
	messageHead = 64 << 10

	// streamWindow is the number of bytes of a message that a client may send before the server
	// reads them. It is fixed, because gRPC would otherwise raise it to 16 MiB for fast clients.
	streamWindow = 64 << 10

	// connWindow is the number of unread bytes of all messages of one connection.
	connWindow = 1 << 20

	// maxCalls bounds the gRPC calls in flight. Each may have sent streamWindow bytes.
	maxCalls = 2048
)

// newGRPC returns the gRPC server and its grpc.health.v1 service for probes. Streams end with the
// context.
func (s *Server) newGRPC(ending context.Context) (*grpc.Server, *health.Server) {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(messageHead), // ModelInfer reads its messages itself
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.ConnectionTimeout(s.o.Timeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: time.Minute, Time: time.Minute, Timeout: s.o.Timeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.InTapHandle(s.tap),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
			handle grpc.StreamHandler) error {
			if info.FullMethod == oip.GRPCInferenceService_ModelInfer_FullMethodName {
				return handle(srv, stream) // requests in flight are answered
			}
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
	to := registrar{server, s}
	oip.RegisterGRPCInferenceServiceServer(to, protocol{s: s})
	grpc_health_v1.RegisterHealthServer(to, readiness)
	readiness.SetServingStatus(oip.GRPCInferenceService_ServiceDesc.ServiceName,
		grpc_health_v1.HealthCheckResponse_SERVING)
	return server, readiness
}

// endingStream is a stream that ends with the server. Without it, clients that watch the server's
// health would keep it running.
type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s endingStream) Context() context.Context { return s.ctx }

// probes are the methods that need no token, in addition to those of grpc.health.v1.
var probes = []string{
	oip.GRPCInferenceService_ServerLive_FullMethodName, oip.GRPCInferenceService_ServerReady_FullMethodName,
	oip.GRPCInferenceService_ModelReady_FullMethodName,
}

// tap runs before the message of a call is read; interceptors run afterwards. It rejects calls
// without a valid token before their messages use memory, and sets a deadline for calls whose
// message does not arrive. Health watches have no deadline.
func (s *Server) tap(ctx context.Context, head *tap.Info) (context.Context, error) {
	if head.FullMethodName == grpc_health_v1.Health_Watch_FullMethodName {
		return ctx, nil
	}
	public := slices.Contains(probes, head.FullMethodName) ||
		strings.HasPrefix(head.FullMethodName, "/"+grpc_health_v1.Health_ServiceDesc.ServiceName+"/")
	if !public {
		if err := s.allowed(strings.Join(head.Header.Get("authorization"), ",")); err != nil {
			// Clients can send any method name.
			s.metrics.requests.WithLabelValues("grpc", "any", codes.Unauthenticated.String()).Inc()
			return ctx, err
		}
	}
	if s.calls.Add(1) > maxCalls {
		s.calls.Add(-1)
		s.metrics.requests.WithLabelValues("grpc", "any", codes.Unavailable.String()).Inc()
		return ctx, status.Error(codes.Unavailable, "busy: too many calls are in flight; try again later")
	}
	limited, cancel := context.WithTimeout(ctx, s.answerTimeout())
	context.AfterFunc(ctx, func() {
		cancel()
		s.calls.Add(-1)
	})
	return limited, nil
}

// unary handles what all calls except ModelInfer share.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (answer any, err error) {
	err = s.call(ctx, "grpc", path.Base(info.FullMethod), func(ctx context.Context) (err error) {
		answer, err = handle(ctx, req)
		return err
	})
	return answer, err
}

// registrar registers services with two changes: messages that cannot be decoded are counted as
// errors of the client, and ModelInfer reads its own message.
type registrar struct {
	*grpc.Server
	s *Server
}

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(described *grpc.ServiceDesc, impl any) {
	service := *described
	service.Methods = nil
	for _, m := range described.Methods {
		if "/"+service.ServiceName+"/"+m.MethodName == oip.GRPCInferenceService_ModelInfer_FullMethodName {
			service.Streams = append(slices.Clone(service.Streams),
				grpc.StreamDesc{StreamName: m.MethodName, Handler: r.s.modelInfer, ClientStreams: true})
			continue
		}
		handle := m.Handler
		m.Handler = func(srv any, ctx context.Context, decode func(any) error,
			interceptor grpc.UnaryServerInterceptor) (any, error) {
			return handle(srv, ctx, func(message any) error {
				err := decode(message)
				if status.Code(err) != codes.Internal {
					return err
				}
				return r.s.call(ctx, "grpc", m.MethodName, func(context.Context) error {
					return invalid("the message cannot be decoded: %s", status.Convert(err).Message())
				})
			}, interceptor)
		}
		service.Methods = append(service.Methods, m)
	}
	r.Server.RegisterService(&service, impl)
}

// protocol is the gRPC service of the Open Inference Protocol, except ModelInfer.
type protocol struct {
	oip.UnimplementedGRPCInferenceServiceServer
	s *Server
}

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
