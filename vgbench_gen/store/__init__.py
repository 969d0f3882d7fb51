"""What lies on disk: column schema, shards, images, pictures, provenance, and the reader of a built dataset."""
