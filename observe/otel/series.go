package otel

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
)

// series identifies one time series of the histogram.
type series struct {
	kind   relayer.OperationKind
	result outcome.Outcome
}

// options returns the attributes of a measurement, sorted and hashed. Preparing
// them is most of the cost of a measurement.
func (s series) options() []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
		operationKey.String(string(s.kind)),
		outcomeKey.String(string(s.result)),
	))}
}

// seriesOptions returns the options of all known operation kinds. A kind added
// later is recorded too, at a higher cost.
func seriesOptions() map[series][]metric.RecordOption {
	prepared := make(map[series][]metric.RecordOption)
	for _, kind := range outcome.Kinds() {
		for _, result := range outcome.All() {
			s := series{kind, result}
			prepared[s] = s.options()
		}
	}
	return prepared
}
