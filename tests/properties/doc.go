// Package properties checks with random relayers that secrets are masked wherever a
// relayer is shown, that a plan makes any registry equal to any configuration, and that fewer
// rules of a policy permit more.
package properties
