"""Results as text: tables, reports and pages."""
