package api_test

import (
	"testing"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }
