// Package docs checks the documentation against the code: snippets compile, samples are real
// responses, and cited tests, names, files and figures exist.
package docs
