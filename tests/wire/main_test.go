package wire

import (
	"testing"

	"github.com/quipu-journal/quipu/dev/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }
