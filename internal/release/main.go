// Command release builds a release from the checked-out commit: the module as a module proxy serves
// it, one binary per platform, built from that module, with an SBOM and a Python wheel, and SHA-256 sums.
//
//	cd internal/release && go run . OUT
//	cd internal/release && go run . -module OUT    only the module
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	moduleOnly := flag.Bool("module", false, "write only the module, without binaries; the commit then needs no tag")
	only := flag.String("only", "", "build only this platform, such as linux/amd64")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run . [-module] [-only PLATFORM] OUT, such as go run . ../../../dist")
		os.Exit(2)
	}
	if err := release(flag.Arg(0), *moduleOnly, *only); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// release writes a release to the folder out, which must not exist.
func release(out string, moduleAlone bool, only string) error {
	version, err := committedVersion()
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if !moduleAlone {
		if err := tagged(version); err != nil {
			return err
		}
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	if err := publish(version, filepath.Join(out, "proxy")); err != nil || moduleAlone {
		return err
	}
	if err := build(version, out, only); err != nil {
		return err
	}
	if err := installer(version, out); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "Dockerfile"), dockerfile, 0o644); err != nil {
		return err
	}
	if err := sums(out); err != nil {
		return err
	}
	return sign(filepath.Join(out, "SHA256SUMS"))
}

// build writes what each platform gets to the folder out.
func build(version, out, only string) error {
	cache, err := os.MkdirTemp("", "miplc-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	when, err := commitTime()
	if err != nil {
		return err
	}
	sources := filepath.Join(cache, "mod", filepath.FromSlash(path)+"@"+version)
	host := ""
	for _, p := range platforms() {
		if only != "" && only != p.system+"/"+p.processor {
			continue
		}
		name := fmt.Sprintf("miplc-%s-%s-%s%s", version, p.system, p.processor, p.note())
		binary := filepath.Join(cache, name+p.ending())
		if err := install(version, filepath.Join(out, "proxy"), cache, p, binary); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if p.system == runtime.GOOS && p.processor == runtime.GOARCH && host == "" {
			host = binary
		}
		steps := []func() error{
			func() error { return describe(binary, filepath.Join(out, name+".cdx.json")) },
			func() error { return pack(name, binary, sources, out, when) },
		}
		if p.wheel != "" {
			steps = append(steps, func() error { return wheel(version, cache, binary, p.wheel, out) })
		}
		if p.system == "linux" && p.compiler != "" {
			steps = append(steps, func() error { return debian(version, host, p, binary, sources, out, when) })
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		fmt.Println(name)
	}
	return nil
}

// sums writes SHA256SUMS with the sums of all files below the folder, for sha256sum -c.
func sums(dir string) error {
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", h.Sum(nil), filepath.ToSlash(name))
		return nil
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(list.String()), 0o644)
}
