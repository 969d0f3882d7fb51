"""Publishing a build on the Hub, fetching a published set, and exports for other programs."""
