// Package misfit finds what of the open jobs of a space does not fit a build, before the build is
// rolled out (O12).
package misfit
