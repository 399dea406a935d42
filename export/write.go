package export

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"google.golang.org/protobuf/proto"
)

// Write writes a model beside its final place and renames it, so that no
// reader sees half a file. The same model gives the same bytes.
func Write(path string, model *onnxpb.ModelProto) error {
	aside, err := writeAside(path, model)
	if err != nil {
		return err
	}
	return place(aside, path)
}

// writeAside writes the model to a temporary file in the folder of path and
// gives its name.
func writeAside(path string, model *onnxpb.ModelProto) (string, error) {
	data, err := onnxpb.Marshal(model)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.onnx")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func place(aside, path string) error {
	if err := os.Rename(aside, path); err != nil {
		os.Remove(aside)
		return err
	}
	return nil
}

// Checked writes a model only if it holds what it promises. The model is
// written aside, read again, checked against its contract and given to verify,
// which runs it in the back ends against the native graph and returns the
// largest absolute difference of each pair. These go into the metadata, and
// the file gets its final name. On any error path stays as it was.
func Checked(path string, model *onnxpb.ModelProto, verify func(tmpPath string) (parity map[string]float64, err error)) error {
	aside, err := writeAside(path, model)
	if err != nil {
		return err
	}
	defer os.Remove(aside) // gone already when all went well
	meta, err := reread(aside, model)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if meta.Parity, err = verify(aside); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := meta.Put(model); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	final, err := writeAside(path, model)
	if err != nil {
		return err
	}
	if _, err := reread(final, model); err != nil {
		os.Remove(final)
		return fmt.Errorf("%s: %w", path, err)
	}
	return place(final, path)
}

// reread reads a file back and checks it: the same model, and its contract.
func reread(path string, model *onnxpb.ModelProto) (*contract.Metadata, error) {
	back, err := onnxpb.Read(path)
	if err != nil {
		return nil, err
	}
	if !proto.Equal(back, model) {
		return nil, fmt.Errorf("the file that was written does not read back as the same model")
	}
	return contract.Check(back)
}
