// Package compose holds docker-compose.yml and the Dockerfile to what they say:
// services, health checks, dependencies, ports, environment.
package compose
