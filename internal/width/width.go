// Package width brings numbers from one width to another.
package width

// To gives the numbers as T, rounded where it is the narrower.
func To[T, From float32 | float64](numbers []From) []T {
	out := make([]T, len(numbers))
	for i, v := range numbers {
		out[i] = T(v)
	}
	return out
}
