// Numbers with their nouns.

package diag

import "testing"

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 cell": Count(1, "cell"), "0 cells": Count(0, "cell"), "2 cells": Count(2, "cell"), "1 class": Count(1, "class"),
		"3 classes": Count(3, "class"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
