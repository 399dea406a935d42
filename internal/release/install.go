// The contents of a release for each platform.

package main

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// platform is an operating system and architecture with the command of its C compiler and the tag of its
// Python wheel. Without a C compiler, the binary is pure Go: it trains with the engine native and predicts
// with onnx-go.
type platform struct{ system, processor, compiler, wheel string }

func (p platform) ending() string {
	if p.system == "windows" {
		return ".exe"
	}
	return ""
}

func (p platform) note() string {
	if p.compiler == "" {
		return "-pure"
	}
	return ""
}

// platforms returns the platforms of a release. Zig compiles C for all of them on one machine, for an old
// glibc on Linux, but lacks headers of macOS. There is no onnxruntime for Python on Macs with Intel
// processors, so they get no wheel.
func platforms() []platform {
	zig := func(target string) string { return python() + " -m ziglang cc -target " + target }
	return []platform{
		{"linux", "amd64", zig("x86_64-linux-gnu.2.28"), "manylinux_2_28_x86_64"},
		{"linux", "arm64", zig("aarch64-linux-gnu.2.28"), "manylinux_2_28_aarch64"},
		{"linux", "amd64", "", ""}, // for musl
		{"linux", "arm64", "", ""},
		{"windows", "amd64", zig("x86_64-windows-gnu"), "win_amd64"},
		{"darwin", "arm64", "", "macosx_12_0_arm64"},
		{"darwin", "amd64", "", ""},
	}
}

// python returns the interpreter that has the packages ziglang and hatchling.
func python() string { return cmp.Or(os.Getenv("MIPLC_PYTHON"), "python3") }

// wheel writes the Python package with a binary to the folder out. It packs the sources that install
// unpacked into the cache.
func wheel(version, cache, binary, tag, out string) error {
	build := exec.Command(python(), "-m", "hatchling", "build", "-t", "wheel", "-d", out)
	build.Dir = filepath.Join(cache, "mod", filepath.FromSlash(path)+"@"+version, "python")
	build.Env = append(os.Environ(), "MIPLC_WHEEL_PROGRAM="+binary, "MIPLC_WHEEL_PLATFORM="+tag)
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the wheel %s: %w\n%s", tag, err, text)
	}
	return nil
}

// environment returns the environment of a go command that reads miplc from the proxy, and its
// dependencies from the module cache of this machine or, if missing, from the usual proxy. It
// unpacks modules to a separate cache, so that test versions do not remain in the user's cache.
func environment(proxy, cache string) ([]string, error) {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, err
	}
	modules, proxies, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw -mod=mod -trimpath", "GOPATH="+cache, "GOMODCACHE="+
		filepath.Join(cache, "mod"), "GOBIN=",
		"GOSUMDB=off", "GOPROXY=file://"+proxy+",file://"+filepath.Join(modules, "cache", "download")+","+proxies), nil
}

// install builds the command from the published module as go install does, stripped and without
// local paths.
func install(version, proxy, cache string, p platform, binary string) error {
	env, err := environment(proxy, cache)
	if err != nil {
		return err
	}
	cgo := "0"
	if p.compiler != "" {
		cgo = "1"
		env = append(env, "CC="+p.compiler)
	}
	ldflags := "-s -w -buildid=" // the ID depends on objects of the C compiler
	// it keeps debug information, with paths of its cache, and on Windows an ID of it, unless told
	if strings.Contains(p.compiler, "ziglang") {
		ldflags += " -extldflags=-Wl,--strip-all"
	}
	build := exec.Command("go", "install", "-trimpath", "-ldflags="+ldflags, path+"/cmd/miplc@"+version)
	build.Env = append(env, "GOOS="+p.system, "GOARCH="+p.processor, "CGO_ENABLED="+cgo)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	dir := filepath.Join(cache, "bin")
	if p.system != runtime.GOOS || p.processor != runtime.GOARCH {
		dir = filepath.Join(dir, p.system+"_"+p.processor)
	}
	data, err := os.ReadFile(filepath.Join(dir, "miplc"+p.ending()))
	if err != nil {
		return err
	}
	return os.WriteFile(binary, data, 0o755)
}

// describe writes a CycloneDX SBOM of a binary from the build information that Go recorded in it.
func describe(binary, file string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	component := func(path, version string) cdx.Component {
		url := "pkg:golang/" + path + "@" + version
		return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
	}
	parts := []cdx.Component{component("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, d := range info.Deps {
		parts = append(parts, component(d.Path, d.Version))
	}
	main := component(info.Main.Path, info.Main.Version)
	main.Type = cdx.ComponentTypeApplication
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &main}
	bom.Components = &parts
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
