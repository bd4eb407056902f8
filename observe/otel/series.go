package otel

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
)

// series is what tells one line of the histogram from another.
type series struct {
	kind  relayer.OperationKind
	ended outcome.Outcome
}

// options has the measurement's attributes, sorted and hashed, which is most of
// what a measurement costs.
func (s series) options() []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
		operationKey.String(string(s.kind)),
		outcomeKey.String(string(s.ended)),
	))}
}

// seriesOptions are of the operations that there are today. One that is new
// costs a little more and is missing nothing.
func seriesOptions() map[series][]metric.RecordOption {
	prepared := make(map[series][]metric.RecordOption)
	for _, kind := range []relayer.OperationKind{
		relayer.OperationCreate, relayer.OperationGet, relayer.OperationList,
		relayer.OperationUpdate, relayer.OperationPause, relayer.OperationResume,
		relayer.OperationDisable, relayer.OperationEnable, relayer.OperationDelete,
	} {
		for _, ended := range outcome.All() {
			s := series{kind, ended}
			prepared[s] = s.options()
		}
	}
	return prepared
}
