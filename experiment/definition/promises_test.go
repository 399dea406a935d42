// What earlier versions of miplc promised about experiments (docs/compatibility.md).

package definition

import (
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// The keys of experiments remain, with their words and defaults.
func TestPromisedKeys(t *testing.T) {
	testsupport.CheckPromisedKeys(t, "experiment", Language.Schema())
}
