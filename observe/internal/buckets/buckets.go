// Package buckets has the histogram buckets of the observers.
package buckets

// Seconds returns the upper bounds of the buckets for durations. They range from an
// in-memory read to a write on a slow disk. The default bounds of both metric
// libraries start at 5 ms, which is above most operations.
func Seconds() []float64 {
	return []float64{
		0.00001, 0.000025, 0.00005,
		0.0001, 0.00025, 0.0005,
		0.001, 0.0025, 0.005,
		0.01, 0.025, 0.05,
		0.1, 0.25, 0.5,
		1, 2.5, 5,
		10,
	}
}
