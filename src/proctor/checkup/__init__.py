"""Is an environment fit to be measured with?"""
