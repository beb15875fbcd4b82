/** What answers about environments are cached under; the feed refreshes what stands below. */

export const ENVIRONMENTS_KEY = ["environments"] as const;
export const environmentKey = (slug: string) => ["environment", slug] as const;
