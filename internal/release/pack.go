// Packages for installation: an archive with the binary, a script that installs it, and a Debian package.

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// base is the address of the files of a release.
const base = "https://" + path + "/releases/download/"

//go:embed install.sh
var script string

// installer writes install.sh for a version.
func installer(version, out string) error {
	text := strings.NewReplacer("@VERSION@", version, "@BASE@", base+version).Replace(script)
	return os.WriteFile(filepath.Join(out, "install.sh"), []byte(text), 0o755)
}

// pack writes NAME.tar.gz with the binary, the licence and the changelog in the folder NAME. Its bytes depend only on
// the files and the time of the commit.
func pack(name, binary, sources, out string, when time.Time) error {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	program := "miplc" + filepath.Ext(strings.TrimPrefix(filepath.Base(binary), name))
	for _, f := range []struct {
		name, path string
		mode       int64
	}{
		{program, binary, 0o755}, {"LICENSE", filepath.Join(sources, "LICENSE"), 0o644},
		{"CHANGELOG.md", filepath.Join(sources, "CHANGELOG.md"), 0o644},
	} {
		data, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: name + "/" + f.name, Mode: f.mode, Size: int64(len(data)),
			ModTime: when, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := archive.Write(data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, name+".tar.gz"), packed.Bytes(), 0o644)
}

const control = `Package: miplc
Version: %s
Architecture: %s
Maintainer: miplc maintainers <maintainers@miplc.invalid>
Depends: libc6 (>= 2.28)
Recommends: python3-pip | npm
Section: science
Priority: optional
Homepage: https://%s
Description: model compiler for multi-instance partial-label learning
 miplc trains classifiers on bags of feature vectors, such as the patches of
 a photo. Each bag has one true label, but perhaps only a few candidates for
 it are known. The trained model is one ONNX file. The first training
 downloads onnxruntime with pip or npm.
`

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: miplc
Source: https://%s

Files: *
Copyright: 2026 the authors of miplc
License: Apache-2.0
 On Debian systems, the text of the license is in
 /usr/share/common-licenses/Apache-2.0.
`

// debian writes the Debian package of a binary for Linux with dpkg-deb, which takes all times from
// SOURCE_DATE_EPOCH. Completions of shells come from host, a program of the release for this machine.
func debian(version, host string, p platform, binary, sources, out string, when time.Time) error {
	root, err := os.MkdirTemp("", "miplc-deb")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(version, "v")
	changes, err := zipped(fmt.Sprintf("miplc (%s) unstable; urgency=medium\n\n"+
		"  * /usr/share/doc/miplc/CHANGELOG.md.gz lists the changes.\n\n"+
		" -- miplc maintainers <maintainers@miplc.invalid>  %s\n", number, when.UTC().Format(time.RFC1123Z)))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(sources, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	log, err := zipped(string(text))
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"DEBIAN/control":                      fmt.Appendf(nil, control, number, p.processor, path),
		"usr/bin/miplc":                       program,
		"usr/share/doc/miplc/copyright":       fmt.Appendf(nil, copyright, path),
		"usr/share/doc/miplc/changelog.gz":    changes,
		"usr/share/doc/miplc/CHANGELOG.md.gz": log,
	}
	for shell, file := range map[string]string{"bash": "bash-completion/completions/miplc",
		"zsh": "zsh/vendor-completions/_miplc", "fish": "fish/vendor_completions.d/miplc.fish"} {
		completion, err := exec.Command(host, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("%s completion %s: %w", host, shell, err)
		}
		files["usr/share/"+file] = completion
	}
	if err := writeFiles(root, files); err != nil {
		return err
	}
	build := exec.Command("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root,
		filepath.Join(out, "miplc_"+number+"_"+p.processor+".deb"))
	build.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(when.Unix(), 10))
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("dpkg-deb: %w\n%s", err, text)
	}
	return nil
}

// writeFiles writes the files of the package below root. All can be read, and the program can be run.
func writeFiles(root string, files map[string][]byte) error {
	for name, data := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if name == "usr/bin/miplc" {
			mode = 0o755
		}
		if err := os.WriteFile(file, data, mode); err != nil {
			return err
		}
	}
	return os.Chmod(root, 0o755)
}

// zipped compresses a text, without its name and time.
func zipped(text string) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
