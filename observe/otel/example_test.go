package relayerotel_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/go-relayer/relayer"
	relayerotel "github.com/go-relayer/relayer/observe/otel"
	"github.com/go-relayer/relayer/store/memory"
)

// The spans of operations are children of the host application's span. A service
// would use its own exporter instead of the in-memory one.
func ExampleNewObserver() {
	exporter := tracetest.NewInMemoryExporter()
	tracers := trace.NewTracerProvider(trace.WithSyncer(exporter))
	observer, err := relayerotel.NewObserver(tracers, nil)
	if err != nil {
		log.Fatal(err)
	}
	manager, err := relayer.New(memory.New(), relayer.WithObserver(observer))
	if err != nil {
		log.Fatal(err)
	}

	ctx, request := tracers.Tracer("host").Start(context.Background(), "request")
	manager.Get(ctx, "sepolia-1")
	request.End()

	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name, span.Status.Code)
		for _, each := range span.Attributes {
			fmt.Println(" ", each.Key, "=", each.Value.AsString())
		}
	}
	// Output:
	// relayer.get Unset
	//   relayer.operation = get
	//   relayer.id = sepolia-1
	//   error.type = not_found
	// request Unset
}

// The histogram counts operations by outcome and records their durations.
func ExampleNewObserver_metrics() {
	reader := metric.NewManualReader()
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	observer, err := relayerotel.NewObserver(nil, meters)
	if err != nil {
		log.Fatal(err)
	}
	manager, err := relayer.New(memory.New(), relayer.WithObserver(observer))
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	manager.Get(ctx, "sepolia-1")
	manager.Get(ctx, "sepolia-2")

	var measured metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &measured); err != nil {
		log.Fatal(err)
	}
	histogram := measured.ScopeMetrics[0].Metrics[0]
	fmt.Println(histogram.Name, histogram.Unit)
	for _, point := range histogram.Data.(metricdata.Histogram[float64]).DataPoints {
		operation, _ := point.Attributes.Value("relayer.operation")
		outcome, _ := point.Attributes.Value("relayer.outcome")
		fmt.Println(operation.AsString(), outcome.AsString(), point.Count)
	}
	// Output:
	// relayer.operation.duration s
	// get not_found 2
}
