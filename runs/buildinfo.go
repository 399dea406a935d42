// Describes the running program: versions, commit, platform.

package runs

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Build describes a program; `miplc version` prints it.
type Build struct {
	Miplc    string `json:"miplc"`              // module version, or "(devel)" for a build from a checkout
	Commit   string `json:"commit,omitempty"`   // of the checkout, if the build recorded it
	Modified bool   `json:"modified,omitempty"` // files of the checkout differed from the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// CurrentBuild returns the description of the running program.
func CurrentBuild() Build {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return describe(build)
}

// describe reads what the build recorded. The commit is known only if Go found the version control
// of the checkout, not for `go run` or an unpacked archive.
func describe(build *debug.BuildInfo) Build {
	info := Build{Miplc: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if build.Main.Version != "" {
		info.Miplc = build.Main.Version
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	return info
}

// String returns one line, e.g. "miplc v0.3.0, commit 3544760662d4 (go1.26.8, linux/amd64)".
func (i Build) String() string {
	s := "miplc " + i.Miplc
	if i.Commit != "" {
		s += ", commit " + i.Commit[:min(12, len(i.Commit))]
	}
	if i.Modified {
		s += " with changes"
	}
	return fmt.Sprintf("%s (%s, %s/%s)", s, i.Go, i.OS, i.Arch)
}
