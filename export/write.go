// Writing of model files: completely or not at all, and only if they pass their checks.

package export

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/onnxpb"
)

// aside writes the model to a temporary file and reads it back.
func aside(path string, model *onnxpb.ModelProto) (*fileio.File, error) {
	content, err := onnxpb.Marshal(model)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := fileio.Create(path, fileio.WriteOptions{Force: true})
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Finish()
	}
	if err == nil {
		var back *onnxpb.ModelProto
		if back, err = onnxpb.Read(f.Name()); err == nil && !proto.Equal(back, model) {
			err = fmt.Errorf("%s: the file that was written does not read back as the same model", path)
		}
	}
	if err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}

// FailedCheck is the error of a model that was written correctly but computes wrong
// results.
type FailedCheck struct {
	Err  error
	Path string // file that was not written; Checked sets it
	Kept string // file of the model instead; Checked sets it
}

func (e *FailedCheck) Error() string {
	if e.Path == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s is not written: %v\nthe model is kept as %s", e.Path, e.Err, e.Kept)
}

func (e *FailedCheck) Unwrap() error { return e.Err }

// Checked writes a model file if the model conforms to its contract. It checks the model, writes a
// temporary file, reads it back and calls verify, which runs it in the back ends, compares it with
// the training graph and updates the metadata. Then it renames the file to path. On an error, path
// does not change. If verify returns a *FailedCheck, the model is saved as failedPath.
func Checked(path, failedPath string, model *onnxpb.ModelProto, verify func(tmpPath string,
	meta *contract.Metadata) error) error {
	meta, err := contract.Check(model)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	tried, err := aside(path, model)
	if err != nil {
		return err
	}
	defer tried.Discard()
	to, failed := path, (*FailedCheck)(nil)
	verdict := verify(tried.Name(), meta)
	switch {
	case errors.As(verdict, &failed):
		to = failedPath
		failed.Path, failed.Kept = path, failedPath
	case verdict != nil:
		return fmt.Errorf("%s: %w", path, verdict)
	}
	if err := meta.Put(model); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	final, err := aside(to, model)
	if err != nil {
		return errors.Join(verdict, err)
	}
	defer final.Discard() // does nothing after Commit
	return errors.Join(verdict, final.Commit())
}
