package relayerotel

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
)

type series struct {
	action relayer.Action
	result outcome.Outcome
}

// options returns the attributes of a measurement, sorted and hashed. Preparing
// them is most of the cost of a measurement.
func (s series) options() []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
		operationKey.String(string(s.action)),
		outcomeKey.String(string(s.result)),
	))}
}

// seriesOptions returns the options of all known actions. One that is added
// later is recorded too, at a higher cost.
func seriesOptions() map[series][]metric.RecordOption {
	prepared := make(map[series][]metric.RecordOption)
	for _, action := range outcome.Actions() {
		for _, result := range outcome.All() {
			s := series{action, result}
			prepared[s] = s.options()
		}
	}
	return prepared
}
