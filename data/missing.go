// Marks of missing values: one rule for labels, candidates, groups, bags, features and files in all formats.

package data

import (
	"slices"
	"strings"
)

// MissingMarks are the texts that programs write for a missing value: Python (None), R (NA), pandas (<NA>, NaT),
// databases (NULL) and spreadsheets (#N/A). NumPy and C write nan in any case.
var MissingMarks = []string{"NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NULL", "null", "None", "NaT"}

// MissingMark reports whether a program writes a missing value as this text. Such a text is not a name, unless a file
// lists it as a class.
func MissingMark(text string) bool {
	return slices.Contains(MissingMarks, text) || strings.EqualFold(text, "nan")
}

// AdviceMissingGroup is the advice for a bag whose group is missing.
const AdviceMissingGroup = "if the group is unknown, give the bag a group of its own, such as its name"

// WrittenForMissing ends the message about a missing mark.
const WrittenForMissing = "as programs write a missing value"
