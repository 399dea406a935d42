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

// TestExportsAreUsed finds exported functions, types, variables, constants and methods that no other
// package uses, tests included. It accepts types in the signature of a used name, the other
// constants of a group, methods that an interface or a template needs, generated files, and package
// runtime, whose users are outside of the repository: see TestRuntimeAPI.
func TestExportsAreUsed(t *testing.T) {
	s := survey{declared: make(map[string]types.Object), used: make(map[string]bool), asked: make(map[string]bool), group: make(map[types.Object][]types.Object)}
	for _, name := range []string{"Is", "As", "Unwrap"} { // called by package errors
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
		t.Errorf("%s is exported, and no other package uses it: unexport it, or delete it if its own package does not use it either", line)
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
	used     map[string]bool                 // names that another package uses
	asked    map[string]bool                 // names of methods that interfaces and templates need
	group    map[types.Object][]types.Object // each constant, with the constants of its declaration
}

// readTemplates collects the names that templates use.
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

// reach marks the types of the signature or fields of a used name. It reports whether it marked a
// new one.
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

// namedIn lists the named types of a signature or of exported fields, also inside composite types.
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

// exempt accepts methods that an interface or a template needs or whose type is not exported, and
// constants of a group or type of which another one is used.
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

// nameOf returns folder.Name or folder.Type.Method for an exported name of this module and "" for
// others. It returns the same for a package and its test variants.
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

// receiver returns the type of a method, or nil for functions and interface methods.
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
