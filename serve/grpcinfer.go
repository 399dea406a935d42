package serve

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/serve/oip"
)

// messageStream is what a server's stream of gRPC has besides its public interface: the
// bytes of its messages. gRPC otherwise hands out a message when all of it is in memory,
// and decodes it into several times its size.
type messageStream interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
}

// messageHeader is the bytes before a message: whether it is compressed, and its length.
const messageHeader = 5

// modelInfer returns the method ModelInfer. It is registered as a stream, so that it sees the
// length of the message and reserves memory for it before it reads it.
func (s *Server) modelInfer(_ any, stream grpc.ServerStream) error {
	var answer *oip.ModelInferResponse
	memory := &reservation{}
	defer func() { memory.release() }() // when the answer is sent
	err := s.call(stream.Context(), call{"grpc", "ModelInfer"}, func(ctx context.Context) error {
		req, err := s.receiveMessage(ctx, stream)
		if err != nil {
			return err
		}
		memory = req.memory
		done, err := s.admission.decoding(ctx, int64(len(req.body)))
		if err != nil {
			return err
		}
		c, err := readMessage(req, s.o.Instances)
		done()
		if err != nil {
			return err
		}
		answer, err = s.infer(c)
		return err
	})
	if err != nil {
		return err
	}
	return stream.SendMsg(answer)
}

// receiveMessage reads the message of a call within the time that it has. It reserves
// memory before it reads. The caller releases the memory.
func (s *Server) receiveMessage(ctx context.Context, stream grpc.ServerStream) (*request, error) {
	from, ok := grpc.ServerTransportStreamFromContext(stream.Context()).(messageStream)
	if !ok {
		return nil, errors.New("this version of gRPC does not give access to the bytes of messages")
	}
	var header [messageHeader]byte
	if err := inTime(ctx, time.Time{}, func() error { return from.ReadMessageHeader(header[:]) }); err != nil {
		return nil, messageError(err)
	}
	size := int64(binary.BigEndian.Uint32(header[1:]))
	switch {
	case header[0] != 0:
		return nil, status.Error(codes.Unimplemented, "the message is compressed: send it without compression")
	case size > s.o.Bytes+messageHead:
		return nil, tooLarge(s.o.Bytes)
	}
	memory, err := s.reserve(ctx, size, copiesOfBinary)
	if err != nil {
		return nil, err
	}
	body, err := readPaced(ctx, from, size)
	if err != nil {
		memory.release()
		return nil, messageError(err)
	}
	return &request{ctx, body, memory}, nil
}

// readPaced reads a message of some bytes at the pace that it must keep.
func readPaced(ctx context.Context, from messageStream, size int64) ([]byte, error) {
	p := newPace(ctx, size)
	body := make([]byte, 0, size)
	for len(body) < int(size) {
		var part mem.BufferSlice
		err := inTime(ctx, p.due(len(body)), func() (err error) {
			part, err = from.Read(min(paceStep, int(size)-len(body)))
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, b := range part {
			body = append(body, b.ReadOnlyData()...)
		}
		part.Free()
	}
	return body, nil
}

// inTime calls a function that reads from a stream and returns when it has returned or
// the time is up. In the second case the function ends with the stream, and the caller
// must not use what it writes to.
func inTime(ctx context.Context, due time.Time, read func() error) error {
	ended := make(chan error, 1)
	var group workers.Group
	group.Go(func() { ended <- workers.Try(read) })
	var late <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case err := <-ended:
		return err
	case <-late:
		return context.DeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// messageError turns an error of reading a message into one for the client.
func messageError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return status.Error(codes.InvalidArgument, "the message ends early")
	}
	if errors.Is(err, context.Canceled) {
		return status.Error(codes.Canceled, "the client has gone")
	}
	return bodyError(err)
}
