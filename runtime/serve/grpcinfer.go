// Inference over gRPC: its messages are read piece by piece, so that their memory can be bounded.

package serve

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runtime/serve/oip"
)

// messageStream gives access to the bytes of the messages of a gRPC stream, which are not part of
// its public interface. gRPC's own methods return a message only when all of it is in memory.
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
		c, err := s.readMessage(req)
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

// receiveMessage reads the message of a call, see readBody.
func (s *Server) receiveMessage(ctx context.Context, stream grpc.ServerStream) (*request, error) {
	from, ok := grpc.ServerTransportStreamFromContext(stream.Context()).(messageStream)
	if !ok {
		return nil, errors.New("this version of gRPC does not give access to the bytes of messages")
	}
	var header [messageHeader]byte
	if err := inTime(ctx, time.Time{}, func() error { return from.ReadMessageHeader(header[:]) }); err != nil {
		return nil, bodyError(err)
	}
	size := int64(binary.BigEndian.Uint32(header[1:]))
	switch {
	case header[0] != 0:
		return nil, status.Error(codes.Unimplemented, "the message is compressed: send it without compression")
	case size > s.o.MaxRequestBytes+messageHead:
		return nil, tooLarge(s.o.MaxRequestBytes)
	}
	return s.readBody(ctx, &messageReader{ctx: ctx, from: from}, size, "") // the message names the model
}

// messageReader reads the bytes of a message.
type messageReader struct {
	ctx  context.Context
	from messageStream
	due  time.Time
}

// SetReadDeadline implements bodySource.
func (r *messageReader) SetReadDeadline(due time.Time) error {
	r.due = due
	return nil
}

// Read implements io.Reader. It reads len(p) bytes or returns an error.
func (r *messageReader) Read(p []byte) (n int, err error) {
	var part mem.BufferSlice
	err = inTime(r.ctx, r.due, func() (err error) {
		part, err = r.from.Read(len(p))
		return err
	})
	if err != nil {
		return 0, err
	}
	defer part.Free()
	return part.CopyTo(p), nil
}

// inTime calls read, which reads from a stream, and returns when it has returned or the time is up.
// If the time is up, read ends with the stream, and the caller must not use the memory that it
// writes to.
func inTime(ctx context.Context, due time.Time, read func() error) error {
	ended := make(chan error, 1)
	var group resources.Group
	group.Go(func() { ended <- resources.Try(read) })
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

// readMessage decodes the message of a request with the generated code. Messages with many empty fields would
// decode to 60 times their size, so it rejects them before, and reserves memory for the decoded message.
func (s *Server) readMessage(req *request) (*inferCall, error) {
	done, err := s.admission.decoding(req.ctx, req.size)
	if err != nil {
		return nil, err
	}
	defer done()
	var m oip.ModelInferRequest
	rest, raw, err := takeRaw(req.body)
	if err != nil {
		return nil, err
	}
	decoded, err := decodedSize(rest, m.ProtoReflect().Descriptor(), int64(maxGrowth*len(rest)+messageHead))
	if need := req.size + decoded; err == nil && need > req.memory.bytes {
		if err := req.memory.resizeAsLarge(need); err != nil {
			return nil, err
		}
	}
	if err == nil {
		err = proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(rest, &m)
	}
	if err != nil {
		return nil, malformed(err)
	}
	if raw == nil {
		req.body, req.size = nil, 0
	}
	return callOf(req, &m, raw)
}

func malformed(err error) error {
	return invalid("the message cannot be decoded: %v", err)
}

// rawContents is the number of the field raw_input_contents.
const rawContents = 7

// takeRaw returns the raw contents of a message, and its other fields. The generated code would copy the raw
// contents, which may be almost all of the message.
func takeRaw(message []byte) (rest []byte, raw [][]byte, err error) {
	for at := 0; at < len(message); {
		number, kind, n := protowire.ConsumeField(message[at:])
		if n < 0 {
			return nil, nil, malformed(protowire.ParseError(n))
		}
		field := message[at : at+n]
		at += n
		switch {
		case number == rawContents && kind == protowire.BytesType:
			_, _, tag := protowire.ConsumeTag(field)
			contents, _ := protowire.ConsumeBytes(field[tag:])
			if raw = append(raw, contents); len(raw) > maxTensors {
				return nil, nil, tooMany("raw contents")
			}
		case raw == nil:
			rest = message[:at:at] // raw contents are the last field of most clients
		default:
			rest = append(rest, field...)
		}
	}
	return rest, raw, nil
}

const (
	// fieldMemory is an upper bound of the bytes that the generated code allocates for a field, in addition to
	// the bytes of its contents: for an empty message, its Go struct and its place in a growing list or map.
	fieldMemory = 192

	// numberMemory is an upper bound of the bytes of an element of a list of numbers, which grows.
	numberMemory = 2 * 8

	// maxGrowth is the ratio of the decoded size of a message to its size: lists of small integers have it.
	maxGrowth = numberMemory
)

var errTooManyFields = errors.New("it has too many fields: no model needs as many")

// decodedSize returns an upper bound of the memory in bytes of a decoded message, or an error if it exceeds limit.
func decodedSize(message []byte, of protoreflect.MessageDescriptor, limit int64) (size int64, err error) {
	for len(message) > 0 && size <= limit {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		field, described := message[:n], of.Fields().ByNumber(number)
		message = message[n:]
		if kind != protowire.BytesType || described == nil {
			size += numberMemory
			continue
		}
		size += fieldMemory
		_, _, tag := protowire.ConsumeTag(field)
		contents, _ := protowire.ConsumeBytes(field[tag:])
		switch described.Kind() {
		case protoreflect.MessageKind:
			var inner int64
			if inner, err = decodedSize(contents, described.Message(), limit-size); err != nil {
				return 0, err
			}
			size += inner
		case protoreflect.StringKind, protoreflect.BytesKind:
			size += int64(len(contents))
		case protoreflect.FloatKind, protoreflect.DoubleKind:
			size += 2 * int64(len(contents)) // lists in several parts grow
		default:
			size += numberMemory * int64(len(contents)) // each may be of one byte
		}
	}
	if size > limit {
		return 0, errTooManyFields
	}
	return size, nil
}

// callOf returns the call of a decoded message with these raw contents.
func callOf(req *request, m *oip.ModelInferRequest, raw [][]byte) (*inferCall, error) {
	c := &inferCall{model: m.ModelName, version: m.ModelVersion, id: m.Id, request: req}
	switch {
	case len(m.Id) > maxMember:
		return nil, invalid("id is longer than %d bytes", maxMember)
	case len(m.Inputs) > maxTensors:
		return nil, tooMany("inputs")
	case len(m.Outputs) > maxTensors:
		return nil, tooMany("outputs")
	case raw != nil && len(raw) != len(m.Inputs):
		return nil, invalid("%d inputs and raw contents of %d: all are raw or none is", len(m.Inputs), len(raw))
	}
	for i, in := range m.Inputs {
		t := inputTensor{name: in.Name, datatype: in.Datatype, shape: in.Shape}
		_, t.sharedMemory = in.Parameters[sharedMemory]
		switch typed := proto.Size(in.Contents) > 0; {
		case typed && raw != nil:
			return nil, invalid("input %.100q has both contents and raw contents: give one", in.Name)
		case typed:
			t.takeTyped(in.Contents)
			req.size += int64(4*len(t.floats) + 8*len(t.ints))
		case raw != nil:
			t.raw = raw[i]
		}
		c.inputs = append(c.inputs, t)
	}
	for _, o := range m.Outputs {
		out := requestedOutput{name: o.Name}
		for _, name := range []string{classification, sharedMemory} {
			if o.Parameters[name] != nil {
				out.unsupported = name
			}
		}
		c.outputs = append(c.outputs, out)
	}
	return c, nil
}

// takeTyped takes the contents in the message field of the datatype.
func (t *inputTensor) takeTyped(contents *oip.InferTensorContents) {
	switch t.datatype {
	case fp32:
		t.floats, contents.Fp32Contents = contents.Fp32Contents, nil
	case fp64:
		t.floats, contents.Fp64Contents = ndarray.Convert[float32](contents.Fp64Contents), nil
	case int64s:
		t.ints, contents.Int64Contents = contents.Int64Contents, nil
	}
	t.otherType = proto.Size(contents) > 0
}
