package cli

import "runtime/debug"

// build is what the linker was told (-X), as images are built from sources without their history.
var build string

// Build names the build for the journal (audit only): what the linker was told, the module's
// version, or its commit.
func Build() string {
	if build != "" {
		return build
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	name := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (name == "" || name == "(devel)") {
			name = s.Value
		}
	}
	return name
}
