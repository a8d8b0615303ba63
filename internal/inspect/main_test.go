package inspect_test

import (
	"os"
	"testing"

	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	soak.Checks(25, 250)
	os.Exit(m.Run())
}
