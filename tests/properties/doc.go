// Package properties checks with random relayers that secrets are masked wherever a
// relayer is shown, and that a plan makes any registry equal to any configuration.
package properties
