// Tests of the options of miplc train that start several runs.

package cli

import (
	"slices"
	"testing"
)

func TestSplitValues(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"0.01,0.05", []string{"0.01", "0.05"}},
		{"train.lr=0.1,train.betas=[0.9, 0.99]", []string{"train.lr=0.1", "train.betas=[0.9, 0.99]"}},
		{`data.set="a, b [1.csv",train.lr=1`, []string{`data.set="a, b [1.csv"`, "train.lr=1"}},
		{`data.set="a\",b",train.lr=1`, []string{`data.set="a\",b"`, "train.lr=1"}},
		{`"a,b.csv",c.csv`, []string{`"a,b.csv"`, "c.csv"}},
		{`x={a: 'b,c'},y=1`, []string{`x={a: 'b,c'}`, "y=1"}},
		{"x=don't,y=isn't", []string{"x=don't", "y=isn't"}},
	} {
		if got := splitValues(test.text); !slices.Equal(got, test.want) {
			t.Errorf("splitValues(%s) = %q, want %q", test.text, got, test.want)
		}
	}
}
