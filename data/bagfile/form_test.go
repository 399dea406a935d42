// Messages name a setting in the form of the command.

package bagfile

// Messages name the setting in the form of the command that was typed, and no other.

import (
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
)

func TestAdviceHasTheFormOfTheCommand(t *testing.T) {
	for _, c := range []struct {
		form Form
		text string
		want []string
	}{
		{FlagForm, "bag,label,f1\na,x,1\n", []string{"rename the column if it has another name; if each label is certain: " +
			"--labels known (multi instead of known: several labels per bag)"}},
		{SpecForm, "bag,label,f1\na,x,1\n", []string{"data.columns.candidates in the spec names the column if it has " +
			"another name; if each label is certain: data.labels: known in the spec, or --set data.labels=known (multi " +
			"instead of known: several labels per bag)"}},
		{ExperimentForm, "bag,label,f1\na,x,1\n", []string{"rename the column if it has another name; if each label is " +
			"certain: labels: known for the dataset in the experiment (multi instead of known: several labels per bag)"}},
		{FlagForm, "bag,label,candidates,f1\na,z,x y,1\n", []string{"change the label or the candidates; leave an unknown " +
			"label empty", "if candidate sets are noisy on purpose: --labels noisy"}},
		{ExperimentForm, "bag,label,candidates,patient,f1\na,x,x y,1,2\n",
			[]string{"to keep the bags of a patient in one part of the split: splits.group: patient in the experiment",
				"leave columns out with --ignore-columns patient", "declare numeric columns as features with --feature-columns"}},
		{SpecForm, "bag,label,candidates,patient,f1\na,x,x y,1,2\n", []string{"to keep the bags of a patient in one part " +
			"of the split: data.split.group: patient in the spec",
			"leave columns out with --ignore-columns patient, or data.columns.ignore in the spec",
			"declare numeric columns as features with --feature-columns, or data.columns.features in the spec"}},
	} {
		_, err := decodeCSV(strings.NewReader(c.text), "bags.csv", Reading{Form: c.form})
		if list, ok := diag.ListOf(err); !ok || !slices.Equal(list[0].Notes, c.want) {
			t.Errorf("%d %q:\ngot  %q\nwant %q", c.form, c.text, err, c.want)
		}
	}
}
