package ortlib

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// Via names a tool by which a library is fetched.
type Via string

// The tools that Install knows.
const (
	ViaAuto Via = "auto" // pip, then npm: pip's download is a fifth of npm's
	ViaPip  Via = "pip"
	ViaNpm  Via = "npm"
)

// pin fixes one shared library inside one published archive.
type pin struct {
	goos, goarch string
	via          Via
	member       string // name of the library inside the archive
	platform     string // pip's name of the platform; "" for npm
	size         int64  // bytes of the library
	sha256       string // of the library, hex
	download     int    // MB of the archive, for the progress line
}

// pinned holds the libraries of onnxruntime 1.27.0. The sums were taken from
// the archives as published; an archive that holds anything else is refused.
var pinned = []pin{
	{"linux", "amd64", ViaPip, "onnxruntime/capi/libonnxruntime.so.1.27.0", "manylinux_2_28_x86_64", 23658512,
		"b5c9d4f124d24707f514dad926dc181820807178855df1c528e3addb2dd0e6f7", 18},
	{"linux", "amd64", ViaNpm, "package/bin/napi-v6/linux/x64/libonnxruntime.so.1", "", 38023776,
		"d8aff4aa8abee8fb2abb2f2f2459ffc94461e781e41b9f7c072829dd0d470221", 101},
	{"linux", "arm64", ViaPip, "onnxruntime/capi/libonnxruntime.so.1.27.0", "manylinux_2_28_aarch64", 20001880,
		"9275ef52956228686ae47b0219f67476a1148505084bdc5571e7bf1bf69b11f2", 16},
	{"linux", "arm64", ViaNpm, "package/bin/napi-v6/linux/arm64/libonnxruntime.so.1", "", 20001880,
		"c36bc200e7e6c093b8abb0b34590fbdd8c52fd3fb5e33795b9523ffdde2fce0f", 101},
	{"darwin", "arm64", ViaPip, "onnxruntime/capi/libonnxruntime.1.27.0.dylib", "macosx_14_0_arm64", 29651448,
		"49422a138fff12d7fcbd544373aefbffd510e473e08e18af28a8ecc3581029bf", 18},
	{"darwin", "arm64", ViaNpm, "package/bin/napi-v6/darwin/arm64/libonnxruntime.1.27.0.dylib", "", 38800984,
		"89f692a3a1a224e4ad0b796b0e7c0bd81113b0741bfe84211eceef14d05a9e59", 101},
}

// pinsFor gives the pins of this system by tool, in the order to try them.
func (p places) pinsFor(via Via) ([]pin, error) {
	var fit []pin
	for _, pin := range p.pins {
		if pin.goos == p.goos && pin.goarch == p.goarch && (via == ViaAuto || via == "" || via == pin.via) {
			fit = append(fit, pin)
		}
	}
	switch {
	case len(fit) > 0:
		return fit, nil
	case via != ViaAuto && via != "" && via != ViaPip && via != ViaNpm:
		return nil, fmt.Errorf("unknown way to install %q: use auto, pip or npm", via)
	}
	return nil, fmt.Errorf("no onnxruntime %s is pinned for %s/%s: install one of version %s or later yourself and set %s",
		Version, p.goos, p.goarch, MinVersion, EnvLibrary)
}

// checkPinned compares a cached file with the pins of this system: its size,
// and with verify its SHA-256.
func (p places) checkPinned(path string, size int64, verify bool) error {
	fit, err := p.pinsFor(ViaAuto)
	if err != nil {
		return nil // nothing is pinned here, so the file was put there by hand
	}
	var same []pin
	for _, pin := range fit {
		if pin.size == size {
			same = append(same, pin)
		}
	}
	if len(same) == 0 {
		return fmt.Errorf("damaged: %d bytes, none of the pinned libraries has that size", size)
	}
	if !verify {
		return nil
	}
	sum, err := sumFile(path)
	if err != nil {
		return err
	}
	for _, pin := range same {
		if pin.sha256 == sum {
			return nil
		}
	}
	return errors.New("damaged: its SHA-256 is not a pinned one")
}

func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
