// The memory that a process may use, with the limits of its groups.

package resources

import (
	"bufio"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// system lists the limits of the system.
func system() []Budget {
	budgets := groups("/proc/self/cgroup", "/sys/fs/cgroup")
	if free, ok := entry("/proc/meminfo", "MemAvailable:"); ok {
		budgets = append(budgets, Budget{free * 1024, "free memory of this machine"})
	}
	if space, limited := AddressSpace(); limited {
		used, _ := entry("/proc/self/status", "VmSize:")
		// Heaps and threads reserve half as much again as they use.
		budgets = append(budgets, Budget{max(0, space-used*1024) * 2 / 3, "limit of address space, ulimit -v"})
	}
	return budgets
}

// AddressSpace returns the limit of the address space of the process in bytes, if it has one.
func AddressSpace() (limit float64, limited bool) {
	var space syscall.Rlimit
	limited = syscall.Getrlimit(syscall.RLIMIT_AS, &space) == nil && space.Cur < 1<<62
	return float64(space.Cur), limited
}

// groups lists the memory that the control groups of the process leave, version 2 and 1. A line of
// membership is "0::/a/b" or "5:memory:/a/b"; the limits of all groups up to the root apply.
func groups(membership, root string) []Budget {
	text, err := os.ReadFile(membership)
	if err != nil {
		return nil
	}
	var budgets []Budget
	for _, line := range strings.Fields(string(text)) {
		part := strings.SplitN(line, ":", 3)
		if len(part) < 3 {
			continue
		}
		folder, limit, used, cache := root, "memory.max", "memory.current", "inactive_file"
		switch {
		case strings.Contains(","+part[1]+",", ",memory,"):
			folder, limit, used, cache = path.Join(root, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file"
		case part[1] != "":
			continue
		}
		for group := path.Clean("/" + part[2]); ; group = path.Dir(group) {
			at := path.Join(folder, group)
			most, known := entry(path.Join(at, limit), "") // "max" means none
			now, knownUse := entry(path.Join(at, used), "")
			// The kernel frees cached files when memory is short.
			files, _ := entry(path.Join(at, "memory.stat"), cache)
			if known && knownUse && most < 1<<62 {
				budgets = append(budgets, Budget{max(0, most-now+files), "limit of this control group"})
			}
			if group == "/" {
				break
			}
		}
	}
	return budgets
}

// entry reads the number after a word at the start of a line, or without a word the number in the first line.
func entry(file, word string) (float64, bool) {
	f, err := os.Open(file)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if word == "" {
			fields = append([]string{""}, fields...)
		}
		if len(fields) > 1 && fields[0] == word {
			n, err := strconv.ParseFloat(fields[1], 64)
			return n, err == nil
		}
	}
	return 0, false
}
