"""What people look at: the gallery, and pages with tables and plots."""
