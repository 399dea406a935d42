// The version that miplc reports: a release, a commit with or without changes, or neither.

package runs

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestDescribe(t *testing.T) {
	machine := " (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	release := debug.Module{Path: "github.com/miplc/miplc", Version: "v0.3.0"}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "35447600662d4cedb40824a32117b484a5c1c768"}
	for want, build := range map[string]debug.BuildInfo{
		"miplc (devel)": {},
		"miplc v0.3.0":  {Main: release},
		"miplc (devel), commit 35447600662d": {Settings: []debug.BuildSetting{commit, {Key: "vcs.modified",
			Value: "false"}}},
		"miplc v0.3.0, commit 35447600662d with changes": {Main: release, Settings: []debug.BuildSetting{commit,
			{Key: "vcs.modified", Value: "true"}}},
		"miplc (devel), commit ab12": {Settings: []debug.BuildSetting{{Key: "vcs.revision",
			Value: "ab12"}}},
	} {
		if got := describe(&build).String(); got != want+machine {
			t.Errorf("got %q, want %q", got, want+machine)
		}
	}
}
