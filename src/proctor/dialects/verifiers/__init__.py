"""verifiers: environments that `import verifiers as vf`, played by verifiers in their own process."""
