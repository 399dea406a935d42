// The version that miplc reports: a release, a commit with or without changes, or neither.

package runs

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestDescribe(t *testing.T) {
	machine := " (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	release := debug.Module{Path: "github.com/miplc/miplc", Version: "v" + Version}
	pseudo := debug.Module{Path: "github.com/miplc/miplc", Version: "v0.0.0-20261126220000-35447600662d"}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "35447600662d4cedb40824a32117b484a5c1c768"}
	changed := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, build := range map[string]debug.BuildInfo{
		"+devel":                     {},
		"":                           {Main: release, Settings: []debug.BuildSetting{commit}},
		"+35447600662d":              {Main: pseudo, Settings: []debug.BuildSetting{commit}},
		"+35447600662d with changes": {Settings: []debug.BuildSetting{commit, changed}},
		"+ab12":                      {Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "ab12"}}},
	} {
		if got := describe(&build).String(); got != "miplc "+Version+want+machine {
			t.Errorf("got %q, want %q", got, "miplc "+Version+want+machine)
		}
	}
}
