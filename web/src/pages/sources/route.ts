import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readText } from "#/app/search";

export const sourcesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sources",
  component: lazyPage(() => import("./SourcesPage"), "SourcesPage"),
});

/** What would be submitted is in the address, except for secrets. */
export const sourceRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sources/$sourceId",
  validateSearch: (search: RawSearch) =>
    compact({
      commit: readText(search.commit),
      recipe: readText(search.recipe),
      dataset: readText(search.dataset),
      rows: readText(search.rows),
    }),
  component: lazyPage(() => import("./SourcePage"), "SourcePage"),
});
