package relayer

import "reflect"

// clone returns a deep copy of the relayer, without what its types keep to themselves: an
// [Amount] is immutable.
func (r *Relayer) clone() *Relayer { return cloneValue(reflect.ValueOf(r)).Interface().(*Relayer) }

func cloneValue(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		element := cloneValue(v.Elem())
		if v.Kind() == reflect.Interface {
			return element
		}
		cloned := reflect.New(v.Type().Elem())
		cloned.Elem().Set(element)
		return cloned
	case reflect.Struct:
		cloned := reflect.New(v.Type()).Elem()
		cloned.Set(v)
		for i := range v.NumField() {
			if field := v.Field(i); v.Type().Field(i).IsExported() && hasReferences(field.Type()) {
				cloned.Field(i).Set(cloneValue(field))
			}
		}
		return cloned
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		cloned := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(cloned, v)
		for i := 0; i < v.Len() && hasReferences(v.Type().Elem()); i++ {
			cloned.Index(i).Set(cloneValue(v.Index(i)))
		}
		return cloned
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		cloned := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			cloned.SetMapIndex(entries.Key(), cloneValue(entries.Value()))
		}
		return cloned
	default:
		return v
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
