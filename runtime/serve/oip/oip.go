// Package oip is the Open Inference Protocol v2 as published by its authors:
// open_inference_grpc.proto is specification/protocol/open_inference_grpc.proto of
// https://github.com/kserve/open-inference-protocol at commit
// d49cc23f89d709d87b210ef9449e273ae243984e, unchanged, under the Apache License 2.0 named in its
// header. The other files are compiled from it with protoc 31.1.
package oip

//go:generate sh generate.sh
