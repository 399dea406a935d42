# Compiles open_inference_grpc.proto with protoc 31.1.
set -e
go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0
common=paths=source_relative,Mopen_inference_grpc.proto=github.com/miplc/miplc/runtime/serve/oip
protoc -I. --go_out=. --go-grpc_out=. --go_opt=$common --go-grpc_opt=$common,require_unimplemented_servers=false \
    open_inference_grpc.proto
