// Package schedule says when a flow's jobs start by the clock: five cron fields in an
// IANA time zone, and what happens to times that passed while no process looked. It is
// pure: the time is an input. It reads the zone database through package time; a program
// that may run without one imports time/tzdata.
//
// # Fields
//
// minute (0–59), hour (0–23), day of the month (1–31), month (1–12 or jan–dec) and day of
// the week (0–7 or sun–sat, 0 and 7 are Sunday), separated by spaces. A field is *, a
// value, a range (which may wrap: 22-2), any of them with a step (*/15, 8-18/2; 8/2 is 8
// to the end; none for a range of weekdays), or a list of these with commas. There are no
// seconds, no names such as @daily, no L, W, # or ?.
//
// If both day fields are restricted, a day needs to match only one of them, as in cron:
// "0 0 13 * fri" is every 13th and every Friday. A day field that is * (or a list with *
// in it) restricts nothing; */2 does.
//
// # When clocks change
//
// If the hours are restricted, a time fires when the zone's clock first shows it or a
// later time, so exactly once a day:
//
//   - an hour that is skipped: 2:30 fires when the clock jumps from 2:00 to
//     3:00, at 3:00, and several skipped times are one;
//   - an hour that comes twice: 2:30 fires in the first of the two.
//
// With * for the hour, or all 24 hours, the schedule follows elapsed time instead:
// "*/15 * * * *" fires every 15 minutes, in both of two equal hours, and a skipped hour
// is not made up for.
package schedule
