// Package mcp makes tools of what MCP servers offer.
package mcp
