package main

import (
	"fmt"
	"go/types"
)

// list returns a line for everything that a package exports. Each begins with the package.
func list(p *types.Package) (lines []string) {
	others := types.RelativeTo(p)
	add := func(format string, args ...any) {
		lines = append(lines, p.Path()+": "+fmt.Sprintf(format, args...))
	}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			add("%s = %s", types.ObjectString(o, others), o.Val().ExactString())
		case *types.TypeName:
			addType(add, o, others)
		default:
			add("%s", types.ObjectString(o, others))
		}
	}
	return lines
}

// addType adds a type, its exported fields and its exported methods, those of embedded types too.
func addType(add func(format string, args ...any), o *types.TypeName, others types.Qualifier) {
	t := o.Type()
	name := types.TypeString(t, others)
	if o.IsAlias() {
		add("%s", types.ObjectString(o, others))
		return
	}
	if named, is := t.(*types.Named); is {
		for i := range named.TypeParams().Len() {
			p := named.TypeParams().At(i)
			add("type %s: %s is %s", name, p, types.TypeString(p.Constraint(), others))
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		add("type %s struct", name)
		for i := range u.NumFields() {
			if f := u.Field(i); f.Exported() {
				tag := ""
				if u.Tag(i) != "" {
					tag = " `" + u.Tag(i) + "`"
				}
				add("type %s struct: %s %s%s", name, f.Name(), types.TypeString(f.Type(), others), tag)
			}
		}
	case *types.Interface:
		add("type %s interface", name)
		for i := range u.NumMethods() {
			add("type %s interface: %s", name, method(u.Method(i), others))
		}
		for i := range u.NumEmbeddeds() {
			add("type %s interface: %s", name, types.TypeString(u.EmbeddedType(i), others))
		}
		return
	default:
		add("type %s %s", name, types.TypeString(u, others))
	}
	ofValues := types.NewMethodSet(t)
	ofPointers := types.NewMethodSet(types.NewPointer(t))
	for i := range ofPointers.Len() {
		m := ofPointers.At(i).Obj()
		if !m.Exported() {
			continue
		}
		receiver := "*" + name
		if ofValues.Lookup(m.Pkg(), m.Name()) != nil {
			receiver = name
		}
		add("method (%s) %s", receiver, method(m, others))
	}
}

// method is the name of a method with its parameters and results.
func method(m types.Object, others types.Qualifier) string {
	signature := types.TypeString(m.Type(), others)
	return m.Name() + signature[len("func"):]
}
