// Bodies of requests: they are read before a deadline, into memory that was reserved for them.

package serve

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runtime"
)

// Factors for the memory that is reserved before a request is read and decoded, relative to its
// size. JSON numbers of one digit, and raw FP16 numbers, become float32 values of twice their size. After
// decoding, the reservation is set to the exact size.
const copies = 3

// bytesOfNumber is the minimum size in bytes of a number in a request: a digit and its comma, or FP16.
const bytesOfNumber = 2

const firstRead = 64 << 10 // bytes reserved for a body of unknown length

// request is the input of the decoders: the body, the memory reserved for the request and its
// deadline.
type request struct {
	ctx    context.Context
	body   []byte
	size   int64 // bytes of the body, or of the tensors that were decoded from it
	memory *reservation
}

// jsonBody returns an error unless the content type of a request is JSON, or JSON followed by raw
// tensors. Web pages may send text or a form to any server that their visitor can reach, but these
// types only to servers that permit it. A request without a content type is an error if it has the
// header Origin, because a browser sent it.
func jsonBody(r *http.Request) error {
	given := r.Header.Get("Content-Type")
	if given == "" && r.Header.Get("Origin") == "" {
		return nil // the HTTP client of Triton sends none
	}
	kind, _, err := mime.ParseMediaType(given)
	if err != nil || kind != "application/json" && kind != "application/octet-stream" {
		return &httpError{http.StatusUnsupportedMediaType, codes.InvalidArgument,
			"the Content-Type of a request must be application/json, or application/octet-stream for binary tensors"}
	}
	return nil
}

// receive reads the body of an HTTP request to a model, see readBody.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, model string) (*request, error) {
	if err := jsonBody(r); err != nil {
		return nil, err
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, invalid("the body has Content-Encoding %.40q: send it without compression", encoding)
	}
	if r.ContentLength > s.o.MaxRequestBytes {
		return nil, tooLarge(s.o.MaxRequestBytes)
	}
	type body struct {
		io.Reader
		*http.ResponseController
	}
	return s.readBody(r.Context(), body{r.Body, http.NewResponseController(w)}, r.ContentLength, model)
}

// readBody reads the body of a request before its deadline. A negative size is unknown. The request is to a
// model, or to any model if its name is empty. readBody reserves memory before it reads; the caller releases it.
func (s *Server) readBody(ctx context.Context, from bodySource, size int64, model string) (*request, error) {
	known := size >= 0
	if !known {
		size = firstRead
	}
	memory, err := s.reserve(ctx, size, s.answerMemory(model, size/bytesOfNumber))
	if err != nil {
		return nil, err
	}
	in := &bodyReader{bodySource: from, memory: memory, limit: s.o.MaxRequestBytes, pace: newPace(ctx, size)}
	body, err := in.read(size, known)
	if err != nil {
		memory.release()
		return nil, bodyError(err)
	}
	return &request{ctx, body, int64(cap(body)), memory}, nil
}

// reserve reserves the memory of a request of size bytes, and answer bytes for its answer. The request
// waits at most half of its time, because it needs the rest for the answer.
func (s *Server) reserve(ctx context.Context, size, answer int64) (*reservation, error) {
	wait, cancel := context.WithTimeout(ctx, s.o.Timeout/2)
	defer cancel()
	pool, bytes := s.admission.pool(size), copies*size+requestOverhead
	return pool.reserve(wait, max(bytes, min(bytes+answer, pool.size))) // answer is an upper bound
}

// answerBytes is reserved for an attention score in the answer: as a number and as JSON text, which is
// copied once, and the bag number of the instance.
const answerBytes = 64

// scores returns the number of attention scores of an instance.
func scores(info *runtime.Info) int {
	if info.ClassAttention {
		return 1 + len(info.Classes)
	}
	return 1
}

// answerMemory returns an upper bound of the memory for the attention scores in the answer to a request
// with the given number of values. If the name of the model is empty, it may be any model.
func (s *Server) answerMemory(model string, values int64) (most int64) {
	for _, info := range s.models.infos(model) {
		n := min(values/int64(ndarray.Size(info.InputShape)), int64(s.o.MaxInstances))
		most = max(most, n*int64(scores(info))*answerBytes)
	}
	return most
}

// reserveDecoded sets the reservation of a request to the memory of its body, of its decoded values and
// of the attention scores in its answer.
func (r *request) reserveDecoded(values, scores int) error {
	return r.memory.resize(int64(values)*4 + int64(scores)*answerBytes + requestOverhead + r.size)
}

// releaseBody drops the body, which has been decoded, and its memory, see reserveDecoded.
func (r *request) releaseBody(values, scores int) error {
	r.body, r.size = nil, 0
	return r.reserveDecoded(values, scores)
}

// bodySource is what a body is read from. Reads end at the deadline.
type bodySource interface {
	io.Reader
	SetReadDeadline(time.Time) error
}

// bodyReader is a body that is being read.
type bodyReader struct {
	bodySource
	memory *reservation
	limit  int64 // of a body of unknown size
	pace
}

// read reads the body into a slice of its size, or of doubling size if it is unknown.
func (in *bodyReader) read(size int64, known bool) ([]byte, error) {
	data := make([]byte, 0, size)
	for {
		if len(data) == cap(data) {
			if known {
				return data, nil // it ends at its length
			}
			larger := min(2*int64(cap(data)), in.limit+1)
			// The copies include the slice that is copied here.
			if err := in.memory.resizeAsLarge(copies*larger + requestOverhead); err != nil {
				return nil, err
			}
			data = append(make([]byte, 0, larger), data...)
		}
		_ = in.SetReadDeadline(in.due(len(data))) // recorders in tests have none
		n, err := in.Read(data[len(data):min(cap(data), len(data)+paceStep)])
		data = data[:len(data)+n]
		switch {
		case !known && int64(len(data)) > in.limit:
			return nil, tooLarge(in.limit)
		case err == io.EOF && known && len(data) < cap(data):
			return nil, io.ErrUnexpectedEOF
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// bodyError converts an error of reading a body to one for the client.
func bodyError(err error) error {
	var late net.Error
	_, hasCode := status.FromError(err)
	switch {
	case hasCode:
		return err
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &late) && late.Timeout():
		return status.Error(codes.DeadlineExceeded, "the body did not arrive in time")
	case errors.Is(err, context.Canceled):
		return errClientGone
	}
	return invalid("the body ends early: %v", err)
}

func tooLarge(limit int64) error {
	return status.Errorf(codes.ResourceExhausted,
		"the request is larger than %s, the limit of this server (--max-bytes)", resources.Bytes(float64(limit)))
}

// paceStep is the maximum number of bytes of a request that are read before one deadline.
const paceStep = 1 << 20

// pace computes when the next bytes of a request must arrive. A client that sends at a steady rate
// and finishes in time never violates it. A client that announces a large request and stops sending
// loses the memory reserved for it after a quarter of the time.
type pace struct {
	begin time.Time
	total time.Duration // for the whole request
	size  int64
}

func newPace(ctx context.Context, size int64) pace {
	begin := time.Now()
	end, _ := ctx.Deadline() // each request has one
	return pace{begin, end.Sub(begin), size}
}

// due returns the time by which more than received bytes must have arrived.
func (p pace) due(received int) time.Time {
	grace := p.total / 4
	share := 1.0 // share of the time after the grace period; small requests have all of it
	if p.size > smallRequest {
		share = min(1, float64(received)/float64(p.size))
	}
	return p.begin.Add(grace + time.Duration(share*float64(p.total-grace)))
}
