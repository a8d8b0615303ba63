//go:build faults

package main

import "github.com/quipu-journal/quipu/internal/fault"

func set(f func(fault.Point, string)) { fault.Set(f) }
