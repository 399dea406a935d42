// Package oip is the Open Inference Protocol v2 as published by its authors:
// open_inference_grpc.proto is specification/protocol/open_inference_grpc.proto of
// https://github.com/kserve/open-inference-protocol at commit
// d49cc23f89d709d87b210ef9449e273ae243984e, unchanged, under the Apache License 2.0 named in its
// header. The other files are compiled from it with protoc 31.1.
package oip

//go:generate go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
//go:generate go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0
//go:generate protoc -I. --go_out=. --go-grpc_out=. --go_opt=paths=source_relative,Mopen_inference_grpc.proto=github.com/miplc/miplc/runtime/serve/oip --go-grpc_opt=paths=source_relative,Mopen_inference_grpc.proto=github.com/miplc/miplc/runtime/serve/oip,require_unimplemented_servers=false open_inference_grpc.proto
