// Generators as text, and back.

package imagebags

import (
	"strings"
	"testing"
)

// A recipe is the same after it was written and parsed; texts that are none are errors.
func TestRecipe(t *testing.T) {
	for _, text := range []string{
		"row", "row resize=64x32 grid=16", "sbn grid=10 neighbours=value",
		"kmeansseg blob=8 color=luv distortion=0.002 improvement=0.5 max-segments=3",
		"sift patch=32 sigma=2.5 step=7", "patches", "patches resize=224x224 gray=true side=14 stride=7",
	} {
		if r, err := ParseRecipe(text); err != nil || r.String() != text {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for text, want := range map[string]string{
		"": "is not known", "slices": "is not known", "row grid": "cannot be used", "row side=3": "cannot be used",
		"row grid=x": "cannot be used", "patches gray=2": "cannot be used",
		"patches side=0": "cannot have a side", "row resize=5": "cannot be used", "row resize=1000000x1": "cannot be brought",
	} {
		if _, err := ParseRecipe(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
