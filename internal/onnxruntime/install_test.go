// Installation of the library.

package onnxruntime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/libraries"
)

// Every pin is complete, and every system has both tools.
func TestPins(t *testing.T) {
	count := map[string]int{}
	for _, p := range pins {
		count[p.System]++
		if raw, err := hex.DecodeString(p.SHA256); err != nil || len(raw) != sha256.Size || p.Size < 1<<20 {
			t.Errorf("%+v: broken", p)
		}
		if !strings.Contains(p.Member, "onnxruntime") || (p.Platform == "") != (p.Via == libraries.ViaNpm) {
			t.Errorf("%+v: broken", p)
		}
	}
	for _, system := range []string{"linux/amd64", "linux/arm64", "darwin/arm64"} {
		if count[system] != 2 {
			t.Errorf("%s has %d pins", system, count[system])
		}
	}
}

// A library in the cache must have the hash that Install verified.
func TestDamagedCache(t *testing.T) {
	m := newMachine(t)
	p := m.places()
	sum := sha256.Sum256([]byte("other bytes"))
	p.pins = []libraries.Pin{{System: "linux/amd64", Via: libraries.ViaPip, Size: 1768,
		SHA256: hex.EncodeToString(sum[:])}}
	m.put(cached)
	_, err := p.find("", anyLibrary)
	if err == nil || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("the damage was not noticed: %v", err)
	}
}

func TestInstallWithoutCache(t *testing.T) {
	p := newMachine(t).places()
	p.cache, p.cacheErr = "", errors.New("HOME is not set")
	_, err := p.install(context.Background(), libraries.InstallOptions{})
	if err == nil || !strings.Contains(err.Error(), "HOME is not set") ||
		!strings.Contains(err.Error(), libraries.EnvCache) {
		t.Errorf("no cache: %v", err)
	}
}
