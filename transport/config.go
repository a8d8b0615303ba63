package transport

// ConfigError is a fault in the configuration of a bus. A caller whose own setting has
// another name puts that in the place of Field.
type ConfigError struct {
	// Field is the name in the bus's Config.
	Field string
	// Err goes on behind the name: "is 9, allowed are 1 to 5".
	Err error
}

// Error names the field and says what is wrong with it.
func (e *ConfigError) Error() string { return e.Field + " " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *ConfigError) Unwrap() error { return e.Err }
