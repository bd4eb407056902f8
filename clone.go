package relayer

import (
	"maps"
	"reflect"
)

// clone returns a deep copy of the relayer, without what its types keep to themselves: an
// [Amount] is immutable.
func (r *Relayer) clone() *Relayer {
	cloned := *r
	detach(reflect.ValueOf(&cloned).Elem())
	return &cloned
}

// detach replaces what a value refers to by copies.
func detach(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		cloned := reflect.New(v.Type().Elem())
		cloned.Elem().Set(v.Elem())
		detach(cloned.Elem())
		v.Set(cloned)
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		cloned := reflect.New(v.Elem().Type()).Elem()
		cloned.Set(v.Elem())
		detach(cloned)
		v.Set(cloned)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				detach(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		cloned := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(cloned, v)
		for i := 0; i < v.Len() && hasReferences(v.Type().Elem()); i++ {
			detach(cloned.Index(i))
		}
		v.Set(cloned)
	case reflect.Map:
		v.Set(reflect.ValueOf(maps.Clone(v.Interface().(map[string]string))))
	}
}

func hasReferences(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Slice, reflect.Map:
		return true
	default:
		return false
	}
}
