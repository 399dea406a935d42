// Groups of bags that stay together in one part of a split.

package data

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// GroupsBy returns groups if want, the name of the groups in a spec, is not empty, and nil
// otherwise. name is the kind of the groups in the file, empty if unknown.
func GroupsBy(want string, groups []string, name string) ([]string, error) {
	switch {
	case want == "":
		return nil, nil
	case groups == nil:
		return nil, fmt.Errorf("the bags have no groups: an .npz file has the groups of its bags in the array groups; a "+
			"CSV file in the column %s", want)
	case name != "" && !strings.EqualFold(diag.Canonical(name), diag.Canonical(want)):
		return nil, fmt.Errorf("the bags have no groups %q; they have %q", want, name)
	}
	return groups, nil
}

// KeepTogether returns groups in which the bags of one file are in one group, so that no test bag is a training
// bag under another name. sameFile is that of data.Dataset; groups may be nil.
func KeepTogether(groups []string, sameFile []int) []string {
	if sameFile == nil {
		return groups
	}
	out, merged := slices.Clone(groups), map[string]string{} // a group and the one that it is part of
	of := func(group string) string {
		for merged[group] != "" {
			group = merged[group]
		}
		return group
	}
	for bag, first := range sameFile {
		switch {
		case groups == nil:
			out = append(out, strconv.Itoa(first))
		case of(groups[bag]) != of(groups[first]):
			merged[of(groups[bag])] = of(groups[first])
		}
	}
	for bag := range groups {
		out[bag] = of(groups[bag])
	}
	return out
}

// CheckGroups returns a *SplitError if a group has bags in several parts of s. groups are the groups of
// all bags.
func CheckGroups(s *Split, groups []string) error {
	type member struct {
		part string
		bag  int
	}
	first := map[string]member{}
	for _, part := range s.Parts() {
		for _, bag := range part.Bags {
			was, known := first[groups[bag]]
			if known && was.part != part.Name {
				return &SplitError{
					Setting: SettingGroup, Text: fmt.Sprintf("group %q is in two parts: bag %d is in part %s, bag %d in part %s",
						groups[bag], was.bag+1, was.part, bag+1, part.Name),
					Note: "all bags of a group must be in the same part",
				}
			}
			if !known {
				first[groups[bag]] = member{part.Name, bag}
			}
		}
	}
	return nil
}
