// Advice of messages in the form of the command that was typed: a flag, a key of a spec or a key of an
// experiment.

package bagfile

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// Form says where the user sets how a file is read.
type Form uint8

const (
	// FlagForm: flags of a command, such as miplc data inspect.
	FlagForm Form = iota
	// SpecForm: the section data of a spec.
	SpecForm
	// ExperimentForm: the datasets and splits of an experiment.
	ExperimentForm
	// PythonForm: arguments of Bags.read of the Python package.
	PythonForm
	// FrameForm: arguments of Bags.from_frame of the Python package, for a CSV file that it wrote. Its header names
	// columns of numbers at the end that its rows do not contain: the package adds them.
	FrameForm
)

// python reports whether the user sets arguments of the Python package.
func (f Form) python() bool { return f == PythonForm || f == FrameForm }

// classes returns how the user lists the classes.
func (f Form) classes() string {
	if f.python() {
		return "list all classes: classes=[...]"
	}
	return "list all classes in a first line " + classesLine
}

// unnamed returns how the user leaves out a column without a name.
func (f Form) unnamed() string {
	if f == FrameForm {
		return "leave it out: frame.drop(columns=...)"
	}
	return "write the file without row numbers: index=False in pandas, row.names=FALSE in R"
}

// labels returns how the user declares the kind of the labels.
func (f Form) labels(kind string) string {
	switch f {
	case SpecForm:
		return fmt.Sprintf("data.labels: %s in the spec, or --set data.labels=%s", kind, kind)
	case ExperimentForm:
		return fmt.Sprintf("labels: %s for the dataset in the experiment", kind)
	case PythonForm, FrameForm:
		return kind + "=True"
	}
	return "--labels " + kind
}

// certainLabels returns the advice for data without candidates.
func (f Form) certainLabels() string {
	if f.python() {
		return "if a bag has any number of labels: multi=True"
	}
	return "if each label is certain: " + f.labels("known") + " (multi instead of known: several labels per bag)"
}

// missingColumn returns the advice for a file without the column of a role.
func (f Form) missingColumn(role int) string {
	name := "rename the column if it has another name"
	switch f {
	case SpecForm:
		name = fmt.Sprintf("data.columns.%s in the spec names the column if it has another name", roleNames[role])
	case PythonForm, FrameForm:
		name = roleNames[role] + `="..." names the column if it has another name`
	}
	switch role {
	case roleBag:
		return "it has the same text in all rows of a bag; " + name
	case roleLabel:
		return name + "; if labels are unknown, add the column and leave its fields empty"
	case roleCandidates:
		return name + "; " + f.certainLabels()
	case roleGroup:
		return f.group("") + " names the column with the group of each bag"
	}
	return name
}

// group returns how the user names the column of the groups, if value is "", or sets it to the value.
func (f Form) group(value string) string {
	flag, key, place := "", "data.split.group", " in the spec"
	switch {
	case f.python():
		return fmt.Sprintf("group=%q", cmp.Or(value, "..."))
	case f == ExperimentForm:
		key, place = "splits.group", " in the experiment"
	case f == FlagForm && value == "":
		return "--group-column"
	case f == FlagForm: // the next command reads a spec
		flag = "--group-column " + value + " here, and "
	}
	if value != "" {
		value = ": " + value
	}
	return flag + key + value + place
}

// known returns the reason why each bag needs a label.
func (f Form) known() string {
	if f.python() {
		return ", and there are no candidates"
	}
	return ", but data.labels is known"
}

// features returns how the user declares columns as features.
func (f Form) features() string {
	if f.python() {
		return "features=[...], which lists all features"
	}
	return f.or("--feature-columns", "data.columns.features")
}

// coordinates returns how the user names the columns of the coordinates.
func (f Form) coordinates() string {
	if f.python() {
		return "coords"
	}
	return "data.columns.coordinates of the spec"
}

// ignoring returns how the user leaves columns out: at most ten, for a shell as a list in CSV.
func (f Form) ignoring(names ...string) string {
	quoted := make([]string, min(10, len(names)))
	for i := range quoted {
		if quoted[i] = quoteCSV(names[i]); f.python() {
			quoted[i] = strconv.Quote(names[i])
		}
	}
	if f.python() {
		return "ignore=[" + strings.Join(quoted, ", ") + "]"
	}
	return "--ignore-columns " + diag.ShellWord(strings.Join(quoted, ","))
}

// ignoringOr is ignoring, with the key of a spec that has the same effect if the user has a spec.
func (f Form) ignoringOr(names ...string) string {
	return f.or(f.ignoring(names...), "data.columns.ignore")
}

// or returns a flag, with the key of a spec that has the same effect if the user has a spec.
func (f Form) or(flag, key string) string {
	if f == SpecForm {
		return flag + ", or " + key + " in the spec"
	}
	return flag
}
