"""What is seen while runs are going on."""
