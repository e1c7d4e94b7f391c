"""What outlives the process: records, tapes, snapshots at rest. Knows nothing of engines or keepers."""
