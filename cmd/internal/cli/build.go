package cli

import "runtime/debug"

// Build names the build for the journal (audit only): the module's version, or its commit.
func Build() string {
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
