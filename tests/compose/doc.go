// Package compose holds docker-compose.yml and the Dockerfile to what they say:
// services, health checks, dependencies, ports, environment, and the logins with least roles, by
// running its commands on servers of the test.
package compose
