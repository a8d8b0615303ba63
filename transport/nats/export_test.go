package nats

// HouseTick is how often a bus looks at its connection.
const HouseTick = houseTick
