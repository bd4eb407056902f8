// Package strictjson decodes JSON into structs and reports every problem of a
// document at once, each with the path of its field. It accepts only what can
// be read in one way: valid UTF-8, names that match exactly and occur once, no
// unknown names, text without NUL and without half surrogate pairs.
//
// The fields of a struct are named by their json tags. A field is required
// unless it is a pointer, a slice, or tagged wire:"optional". A field tagged
// wire:"nonempty" must not be the zero value if it is given. A field tagged
// wire:"initial" cannot be changed by a patch, and no document has a field tagged
// wire:"readonly". Null means omitted.
// Integers are whole numbers of 0 or more, in any notation.
package strictjson
