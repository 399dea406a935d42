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
	"github.com/miplc/miplc/runtime/serve/oip"
)

// messageStream gives access to the bytes of the messages of a gRPC stream, which are not part of
// its public interface. gRPC's own methods return a message only when all of it is in memory, and
// decode it to several times its size.
type messageStream interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
}

// messageHeader is the number of bytes before a message: compression flag and length.
const messageHeader = 5

// modelInfer is the method ModelInfer. It is registered as a stream, so that it can read the length
// of the message and reserve memory before it reads the message.
func (s *Server) modelInfer(_ any, stream grpc.ServerStream) error {
	var answer *oip.ModelInferResponse
	memory := &reservation{}
	defer func() { memory.release() }() // after the answer is sent
	err := s.call(stream.Context(), "grpc", "ModelInfer", func(ctx context.Context) error {
		req, err := s.receiveMessage(ctx, stream)
		if err != nil {
			return err
		}
		memory = req.memory
		done, err := s.admission.decoding(ctx, int64(len(req.body)))
		if err != nil {
			return err
		}
		c, err := readMessage(req, s.o.MaxInstances)
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

// receiveMessage reads the message of a call before its deadline. It reserves memory before it
// reads. The caller releases the memory.
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
	case size > s.o.MaxRequestBytes+messageHead:
		return nil, tooLarge(s.o.MaxRequestBytes)
	}
	memory, err := s.reserve(ctx, size, s.answerMemory("", size/bytesOfNumber)) // the message names the model
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

// readPaced reads a message of size bytes and checks its pace.
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

// inTime calls read, which reads from a stream, and returns when it has returned or the time is up.
// If the time is up, read ends with the stream, and the caller must not use the memory that it
// writes to.
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

// messageError converts an error of reading a message to one for the client.
func messageError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return status.Error(codes.InvalidArgument, "the message ends early")
	}
	if errors.Is(err, context.Canceled) {
		return status.Error(codes.Canceled, "the client has gone")
	}
	return bodyError(err)
}
