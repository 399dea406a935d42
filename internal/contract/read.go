// Reading of model files.

package contract

import (
	"fmt"

	"github.com/miplc/miplc/internal/onnxpb"
)

// Read reads a model file and its metadata. The error names the violated part of the contract.
func Read(path string) (*onnxpb.ModelProto, *Metadata, error) {
	model, err := onnxpb.Read(path)
	if err != nil {
		return nil, nil, err
	}
	meta, err := Check(model)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return model, meta, nil
}
