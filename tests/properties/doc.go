// Package properties checks with random relayers that secrets are masked wherever a
// relayer is shown.
package properties
