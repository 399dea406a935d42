// Describes the running program: versions, commit, platform.

package runs

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is the version of miplc: that of the release whose tag is v and this text, or of the next release.
// docs/compatibility.md says what a version promises. python/hatch_build.py and internal/release read this line.
const Version = "0.1.0"

// Build describes a program; `miplc version` prints it.
type Build struct {
	// Version; unless it is the release, with + and the first 12 digits of the commit, or +devel
	Miplc    string `json:"miplc"`
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
	info := Build{Miplc: Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	if build.Main.Version != "v"+Version {
		info.Miplc += "+" + cmp.Or(info.Commit[:min(12, len(info.Commit))], "devel")
	}
	return info
}

// String returns one line, e.g. "miplc 0.3.0+354476006624 with changes (go1.26.8, linux/amd64)".
func (i Build) String() string {
	s := "miplc " + i.Miplc
	if i.Modified {
		s += " with changes"
	}
	return fmt.Sprintf("%s (%s, %s/%s)", s, i.Go, i.OS, i.Arch)
}
