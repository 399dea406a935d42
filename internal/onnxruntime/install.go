// Installation of the library: the pinned versions, with their hashes, and their place in the cache.

package onnxruntime

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/miplc/miplc/internal/libraries"
)

// InstallLibrary downloads the pinned onnxruntime to the cache and returns it. If a valid library is
// already there, it does not use the network.
func InstallLibrary(ctx context.Context, o libraries.InstallOptions) (Library, error) {
	return here().install(ctx, o)
}

func (p places) install(ctx context.Context, o libraries.InstallOptions) (Library, error) {
	if p.cache == "" {
		return Library{}, fmt.Errorf("cannot install onnxruntime: %w; set %s to a directory", p.cacheErr, libraries.EnvCache)
	}
	s := p.slot()
	if err := s.Install(ctx, o); err != nil {
		return Library{}, err
	}
	return Library{Path: s.Path, Version: Version, Origin: FromCache}, nil
}

// Source returns what InstallLibrary would download, or an error that says why it cannot.
func Source(ctx context.Context) (libraries.Pin, error) { return here().source(ctx) }

func (p places) source(ctx context.Context) (libraries.Pin, error) {
	if p.cache == "" {
		return libraries.Pin{}, fmt.Errorf("cannot install onnxruntime: %w; set %s to a directory", p.cacheErr,
			libraries.EnvCache)
	}
	return p.slot().Source(ctx)
}

// slots returns the libraries in the cache. The build with CUDA, if it is installed, has precedence,
// because the execution provider for CUDA works only with that build.
func (p places) slots() []libraries.Slot {
	list := []libraries.Slot{p.slot()}
	cuda, _ := providerSlots(p.cache, CUDA) // its first file is onnxruntime
	if _, err := os.Stat(cuda[0].Path); err == nil && cuda[0].System == p.goos+"/"+p.goarch {
		list = append(cuda[:1], list...)
	}
	return list
}

// slot returns the pinned library in the cache.
func (p places) slot() libraries.Slot {
	l := libraries.Release{Name: "onnxruntime " + Version, Pins: p.pins,
		Remedy: "get a library of version " + minVersion + " or later yourself and set " + EnvLibrary}
	s := l.On(p.cachePath())
	s.System = p.goos + "/" + p.goarch
	return s
}

// Pins returns the libraries that Install may download, in the order in which it tries them.
func Pins() []libraries.Pin { return slices.Clone(pins) }

// pins lists the libraries of onnxruntime 1.27.0, pip's first, because its download is a fifth of
// npm's. The checksums are those of the published archives; archives with other contents are
// rejected.
var pins = []libraries.Pin{
	{System: "linux/amd64", Via: libraries.ViaPip, Archive: "onnxruntime==" + Version,
		Member:   "onnxruntime/capi/libonnxruntime.so.1.27.0",
		Platform: "manylinux_2_28_x86_64", Size: 23658512, Download: 18,
		SHA256: "b5c9d4f124d24707f514dad926dc181820807178855df1c528e3addb2dd0e6f7"},
	{System: "linux/amd64", Via: libraries.ViaNpm, Archive: "onnxruntime-node@" + Version,
		Member: "package/bin/napi-v6/linux/x64/libonnxruntime.so.1",
		Size:   38023776, Download: 101,
		SHA256: "d8aff4aa8abee8fb2abb2f2f2459ffc94461e781e41b9f7c072829dd0d470221"},
	{System: "linux/arm64", Via: libraries.ViaPip, Archive: "onnxruntime==" + Version,
		Member:   "onnxruntime/capi/libonnxruntime.so.1.27.0",
		Platform: "manylinux_2_28_aarch64", Size: 20001880, Download: 16,
		SHA256: "9275ef52956228686ae47b0219f67476a1148505084bdc5571e7bf1bf69b11f2"},
	{System: "linux/arm64", Via: libraries.ViaNpm, Archive: "onnxruntime-node@" + Version,
		Member: "package/bin/napi-v6/linux/arm64/libonnxruntime.so.1",
		Size:   20001880, Download: 101,
		SHA256: "c36bc200e7e6c093b8abb0b34590fbdd8c52fd3fb5e33795b9523ffdde2fce0f"},
	{System: "darwin/arm64", Via: libraries.ViaPip, Archive: "onnxruntime==" + Version,
		Member:   "onnxruntime/capi/libonnxruntime.1.27.0.dylib",
		Platform: "macosx_14_0_arm64", Size: 29651448, Download: 18,
		SHA256: "49422a138fff12d7fcbd544373aefbffd510e473e08e18af28a8ecc3581029bf"},
	{System: "darwin/arm64", Via: libraries.ViaNpm, Archive: "onnxruntime-node@" + Version,
		Member: "package/bin/napi-v6/darwin/arm64/libonnxruntime.1.27.0.dylib",
		Size:   38800984, Download: 101,
		SHA256: "89f692a3a1a224e4ad0b796b0e7c0bd81113b0741bfe84211eceef14d05a9e59"},
}
