// Installation of the library.

package onnxruntime

import (
	"context"
	"fmt"
	"os"

	"github.com/miplc/miplc/internal/native"
)

// InstallLibrary downloads the pinned onnxruntime to the cache and returns it. If a valid library is
// already there, Install does not use the network.
func InstallLibrary(ctx context.Context, o native.InstallOptions) (Library, error) {
	return here().install(ctx, o)
}

func (p places) install(ctx context.Context, o native.InstallOptions) (Library, error) {
	if p.cache == "" {
		return Library{}, fmt.Errorf("cannot install onnxruntime: %w; set %s to a directory", p.cacheErr, native.EnvCache)
	}
	if err := p.slot().Install(ctx, o); err != nil {
		return Library{}, err
	}
	c := p.checkAt(p.cachePath(), FromCache)
	if c.Verdict != VerdictFound {
		return Library{}, fmt.Errorf("the library installed at %s cannot be used: %s", c.Path, c.Detail)
	}
	return Library{Path: c.Path, Version: c.Version, Origin: FromCache}, nil
}

// slots returns the libraries in the cache. The build with CUDA, if it is installed, has precedence,
// because the execution provider for CUDA works only with that build.
func (p places) slots() []native.Slot {
	list := []native.Slot{p.slot()}
	for _, s := range cudaSlots(p.cache)[:1] {
		if _, err := os.Stat(s.Path); err == nil && s.System == p.goos+"/"+p.goarch {
			list = append([]native.Slot{s}, list...)
		}
	}
	return list
}

// slot returns the pinned library in the cache.
func (p places) slot() native.Slot {
	l := native.Library{Name: "onnxruntime " + Version, Pins: p.pins,
		Remedy: "get a library of version " + minVersion + " or later yourself and set " + EnvLibrary}
	s := l.On(p.cachePath())
	s.System = p.goos + "/" + p.goarch
	return s
}
