// Marks of missing values: one rule for labels, candidates, groups, bags, features and files in all formats.

package data

import (
	"slices"
	"strings"
)

// MissingMark reports whether a program writes a missing value as this text: NumPy (nan), Python (None), R (NA), pandas
// (<NA>, NaT), databases (NULL) or spreadsheets (#N/A). Such a text is not a name, unless a file lists it as a class.
func MissingMark(text string) bool {
	return slices.Contains([]string{"NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NULL", "null", "None", "NaT"}, text) ||
		strings.EqualFold(text, "nan")
}

// AdviceMissingGroup is the advice for a bag whose group is missing.
const AdviceMissingGroup = "if the group is unknown, give the bag a group of its own, such as its name"

// WrittenForMissing ends the message about a missing mark.
const WrittenForMissing = "as programs write a missing value"
