// A file with very many mistakes.

package language

import (
	"errors"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
)

// Reading stops after many errors at any place in a file, and the file is not accepted as valid.
func TestTooManyFaults(t *testing.T) {
	many := func(part string) string { return strings.Repeat(part, 2*diag.MaxFound) }
	for name, src := range map[string]string{
		"keys":    "name: x\n" + many("k: 1\n"),
		"aliases": "name: &a x\nmodel: [" + many("*a,") + "]\n",
		"blocks":  "name: x\nmodel: {blocks: [" + many("nope,") + "]}\n",
		"equation": small + "weights: {update: '" + strings.Repeat("n.n+", diag.MaxFound/3) + "1'}\nloss: [" +
			strings.Repeat("equation: {name: e, value: a.b + c.d},", diag.MaxFound) + "]\n",
		"names": small + "loss: [" + strings.Repeat("equation: {name: e, value: nope + nope},", diag.MaxFound) + "]\n",
	} {
		s, err := Parse("test.yaml", []byte(src))
		var list diag.List
		if s != nil || !errors.As(err, &list) || len(list) < diag.MaxFound || len(list) > diag.MaxFound+1 {
			t.Errorf("%s: %d errors", name, len(list))
		}
	}
	var list diag.List
	_, err := Parse("test.yaml", []byte(small), "model.blocks=["+many("&a b,")+"]", "train.epochs=x")
	if !errors.As(err, &list) || len(list) != diag.MaxFound {
		t.Errorf("--set: %d errors", len(list))
	}
}
