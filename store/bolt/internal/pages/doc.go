// Package pages reads the pages of a bbolt file without the engine, which follows a
// damaged page without limit.
package pages
