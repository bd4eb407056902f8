// Package docs checks the documentation against the code: Go snippets compile,
// programs print what the page says, and cited tests, names and files exist.
package docs
