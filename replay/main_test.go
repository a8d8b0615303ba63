package replay_test

import (
	"os"
	"testing"

	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	soak.Checks(20, 400)
	os.Exit(m.Run())
}
