package codebase

import (
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestExportsAreUsed finds exported functions, types, variables, constants and
// methods that no other package names, tests included. It lets pass types that
// the signature of a used name needs, the other constants of a group, methods that an
// interface or a template asks for, generated files, and the package runtime, whose
// users are elsewhere: its names are held by TestRuntimeAPI.
func TestExportsAreUsed(t *testing.T) {
	s := survey{declared: make(map[string]types.Object), used: make(map[string]bool), asked: make(map[string]bool), group: make(map[types.Object][]types.Object)}
	for _, name := range []string{"Is", "As", "Unwrap"} { // asked for inside package errors
		s.asked[name] = true
	}
	s.readTemplates(t)
	fset := token.NewFileSet()
	for _, p := range load(t, fset) {
		s.add(p)
	}
	for again := true; again; {
		again = false
		for k, obj := range s.declared {
			if s.used[k] {
				again = s.reach(obj) || again
			}
		}
	}
	var unused []string
	for k, obj := range s.declared {
		if !s.used[k] && !s.exempt(obj) {
			pos := fset.Position(obj.Pos())
			unused = append(unused, pos.String()+": "+k)
		}
	}
	slices.Sort(unused)
	for _, line := range unused {
		t.Errorf("%s is exported, and no other package names it: write it small, or delete it if its own package does not need it either", line)
	}
}

func load(t *testing.T, fset *token.FileSet) []*packages.Package {
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		Dir:  root, Fset: fset, Tests: true,
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
	}
	return all
}

// survey collects names by the keys of nameOf.
type survey struct {
	declared map[string]types.Object
	used     map[string]bool                 // by another package
	asked    map[string]bool                 // names of methods that interfaces and templates ask for
	group    map[types.Object][]types.Object // the constants that are declared together, by each of them
}

// readTemplates finds the names that templates ask for.
func (s *survey) readTemplates(t *testing.T) {
	var files []string
	for _, pattern := range []string{"/*/*.tmpl", "/*/*/*.tmpl"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no template is %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\.[A-Z]\w*`).FindAllString(string(text), -1) {
			s.asked[name[1:]] = true
		}
	}
}

func (s *survey) add(p *packages.Package) {
	for _, file := range p.Syntax {
		if p.ID != p.PkgPath || ast.IsGenerated(file) || strings.HasPrefix(p.PkgPath+"/", module+"runtime/") && !strings.Contains(p.PkgPath, "/ort") {
			continue // a variant for tests, or a package that is exempt
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if k := nameOf(p.TypesInfo.Defs[n]); k != "" {
					s.declared[k] = p.TypesInfo.Defs[n]
				}
			case *ast.GenDecl:
				s.addGroup(n, p.TypesInfo)
			}
			return true
		})
	}
	for _, obj := range p.TypesInfo.Uses {
		if obj.Pkg() != nil && obj.Pkg().Path() != p.PkgPath {
			s.used[nameOf(obj)] = true
		}
	}
	for _, tv := range p.TypesInfo.Types {
		s.ask(tv.Type)
	}
	for _, imported := range p.Types.Imports() {
		for _, name := range imported.Scope().Names() {
			s.ask(imported.Scope().Lookup(name).Type())
		}
	}
}

func (s *survey) addGroup(decl *ast.GenDecl, info *types.Info) {
	var all []types.Object
	for _, spec := range decl.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok && decl.Tok == token.CONST {
			for _, name := range v.Names {
				all = append(all, info.Defs[name])
			}
		}
	}
	for _, obj := range all {
		s.group[obj] = all
	}
}

func (s *survey) ask(t types.Type) {
	if t == nil {
		return
	}
	if i, ok := t.Underlying().(*types.Interface); ok {
		for m := range i.Methods() {
			s.asked[m.Name()] = true
		}
	}
}

// reach marks what a used name needs: the types of its signature or fields.
// It reports whether there was any that had not been marked.
func (s *survey) reach(obj types.Object) (found bool) {
	visit := func(t types.Type) {
		for _, named := range namedIn(t) {
			if k := nameOf(named); k != "" && !s.used[k] {
				s.used[k] = true
				found = true
			}
		}
	}
	visit(obj.Type())
	if name, ok := obj.(*types.TypeName); ok {
		visit(name.Type().Underlying())
	}
	return found
}

// namedIn lists the named types of a signature, of exported fields, and of what
// these are composed of.
func namedIn(t types.Type) []*types.TypeName {
	switch t := t.(type) {
	case *types.Named:
		all := []*types.TypeName{t.Obj()}
		for arg := range t.TypeArgs().Types() {
			all = append(all, namedIn(arg)...)
		}
		return all
	case *types.Alias:
		return append(namedIn(types.Unalias(t)), t.Obj())
	case *types.Map:
		return append(namedIn(t.Key()), namedIn(t.Elem())...)
	case interface{ Elem() types.Type }:
		return namedIn(t.Elem())
	case *types.Signature:
		return append(namedIn(t.Params()), namedIn(t.Results())...)
	case *types.Tuple:
		var all []*types.TypeName
		for v := range t.Variables() {
			all = append(all, namedIn(v.Type())...)
		}
		return all
	case *types.Struct:
		var all []*types.TypeName
		for f := range t.Fields() {
			if f.Exported() {
				all = append(all, namedIn(f.Type())...)
			}
		}
		return all
	case *types.Interface:
		var all []*types.TypeName
		for m := range t.Methods() {
			all = append(all, namedIn(m.Type())...)
		}
		return all
	}
	return nil
}

// exempt lets methods pass that are asked for or belong to a type that is not
// exported, and constants of a group of which one is used, or of a type that is.
func (s *survey) exempt(obj types.Object) bool {
	switch obj := obj.(type) {
	case *types.Func:
		if recv := receiver(obj); recv != nil {
			return s.asked[obj.Name()] || !recv.Exported()
		}
	case *types.Const:
		if named, ok := obj.Type().(*types.Named); ok && s.used[nameOf(named.Obj())] {
			return true
		}
		return slices.ContainsFunc(s.group[obj], func(other types.Object) bool { return s.used[nameOf(other)] })
	}
	return false
}

// nameOf is folder.Name or folder.Type.Method of an exported name of ours, "" of all
// others. It is the same for a package and its variants for tests.
func nameOf(obj types.Object) string {
	if obj == nil || obj.Pkg() == nil || !obj.Exported() {
		return ""
	}
	folder, ours := strings.CutPrefix(obj.Pkg().Path(), module)
	if !ours {
		return ""
	}
	if f, ok := obj.(*types.Func); ok {
		if recv := receiver(f); recv != nil {
			return folder + "." + recv.Name() + "." + f.Name()
		}
	}
	if obj.Parent() != obj.Pkg().Scope() {
		return ""
	}
	return folder + "." + obj.Name()
}

// receiver returns the type that a method belongs to; nil of functions and of methods
// of interfaces.
func receiver(f *types.Func) *types.TypeName {
	recv := f.Origin().Signature().Recv()
	if recv == nil {
		return nil
	}
	typ := recv.Type()
	if ptr, ok := typ.(*types.Pointer); ok {
		typ = ptr.Elem()
	}
	if named, ok := typ.(*types.Named); ok {
		return named.Obj()
	}
	return nil
}
